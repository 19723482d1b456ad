/** The types of the server's answers and of the page. This module contains no code. */

/**
 * @typedef {{seat: number, path: number, from: number, to: number}} Move
 * @typedef {{action: number, kind: string, notation: string, keep: boolean[]|null, path: number|null,
 *   seats: number[]|null, moves: Move[], power: number|null}} ActionParts the parts of a decision
 * @typedef {ActionParts & {words: string, scores: number[]}} Choice with the scores after it
 * @typedef {ActionParts & {ply: number, turn: number, seat: number, dice: number[], words: string, did: string, forced: boolean,
 *   roll: number[]|null, note: string|null}} Step `did` is `words` without the name of the player
 * @typedef {{seat: number, kind: string, agent: string|null, name: string, taken: boolean, connected: boolean,
 *   mine: boolean}} Seat
 * @typedef {{turn: number, player: number, phase: string, rolls_left: number, dice: number[], perfection: boolean,
 *   pieces: number[][], color: number[], dead: number[][], used: boolean[], scores: number[],
 *   position: string}} State
 * @typedef {{players: number, spaces: number, powers: string, immunity: boolean, dead_pieces: number | string,
 *   colors: string|number[]|null, start: string|number}} Rules
 * @typedef {{expired: boolean, winners: number[], scores: number[], rewards: number[], resigned: number|null,
 *   words: string}} Result `resigned` is the seat that has resigned, if any
 * @typedef {(number[]|null)[][]} RollOff rounds of five faces for each seat; null for a seat that does not roll
 * @typedef {State & {table: string, game: number, ply: number, status: string, host: boolean, mine: number[],
 *   lent: number[], gives: number[], left: number|null, reach: (number|null)[][]|null,
 *   waiting_for: number[], rules: Rules, rules_words: string, help: boolean, seats: Seat[], moved: Move[],
 *   roll_off: RollOff|null, choices: Choice[], log: Step[], log_from: number, pace: number|null, spectators: number,
 *   result: Result|null}} View `lent` are the person's seats for which agents play, `gives` the seats that the person may
 *   give to agents, `left` the seconds for the decision, `reach` the spaces that dice of one element lead to, as [path][dice - 1]
 * @typedef {{source: string, exact: boolean, guarantee: number|null}} Source of win chances; `guarantee` is the chance
 *   to win that the seat to act can guarantee, if it is known
 * @typedef {Source & {ply: number, game: number, chances: number[],
 *   hints: {action: number, loss: number}[]}} Help
 *
 * @typedef {State & {rules: Rules, choices: Choice[]}} Study a position with its choices
 * @typedef {Study & Source & {chances: number[], agents: Record<string, number>}} Valued with the chance to win after
 *   each choice, and the actions of agents
 * @typedef {{position: string, kind: string, level: number, lost: number[]}} Puzzle the loss of each choice in order, in
 *   thousandths of a game
 * @typedef {{title: string, tasks: {position: string, accept: string[], words: string, done: string, hint: string}[]}} LessonStep a step of the
 *   tutorial: `accept` are the notations of the wanted choices, `hint` the answer to others
 *
 * @typedef {{table: string, help: boolean, open: number[],
 *   rules: Rules, seats: {seat: number, kind: string, name: string, taken: boolean}[]}} Entry of the list of open tables
 * @typedef {{name: string, words: string, level: number|null, why: Reason|null}} Agent with its strength from 1, if it
 *   has one, and the reason why it does not play the rules of the request; `/api/setup` is for the basic game
 * @typedef {{code: string, values: Record<string, string>, error: string, status: number}} Reason of a refusal, and its
 *   sentence in English
 * @typedef {{least: number, most: number, default: number}} Range
 * @typedef {{values: (string|boolean|null)[], default: string|boolean|null}} Options
 * @typedef {{ready: boolean, agents: Agent[], name_length: number, pace: Range,
 *   rules: {players: Range, spaces: Range, dead_pieces: Range, powers: Options, immunity: Options, colors: Options,
 *   start: Options}, most_dead_pieces: number[][]}} Setup; the largest number of dead pieces by players and plain spaces
 *
 * @typedef {{seat: number, name: string, decisions: number, errors: number, blunders: number, regret: number,
 *   luck: number|null, luck_adjusted: number|null}} SeatGrade
 * @typedef {Step & {state: State, class: string, regret: number|null, margin: number|null, best: ActionParts|null, best_words: string, luck: number|null,
 *   chances: number[]}} GradedStep
 * @typedef {{rules: Rules, players: string[], text: string, steps: GradedStep[],
 *   last: State, result: Result|null, source: string, exact: boolean, thresholds: number[], last_chances: number[],
 *   seats: SeatGrade[]}} Review
 *
 * @typedef {Node|string|null|false|undefined} Child of an element; empty children are left out
 * @typedef {{key: string, watch?: string, invitations?: {seat: number, invitation: string}[],
 *   address?: string|null}} Keys of a table, and the address of the page for others
 * @typedef {{offered: Choice[], picked: number[], path: number}} Chosen an unconfirmed choice: choices to confirm, or the
 *   seats of one or two pieces on a path for a swap
 * @typedef {{order: number[], kept: boolean[], rolled: boolean[]}} Places by place on the screen: the index of the die
 *   among the engine's sorted dice, and whether the last roll kept or rolled it
 * @typedef {{kind: "move"|"power"|"swap"|"picked"|"lead", color?: number, words: string}} CellMark on the board
 * @typedef {(main: HTMLElement, signal: AbortSignal, ...parts: string[]) => void} Page shows a part of the page until
 *   the signal, given the parts of its address
 */

export {};
