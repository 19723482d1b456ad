/**
 * Way of the Dragon for web pages and Node: the engine, the observations and the turn planner of wotd_env, compiled to
 * wotd.wasm. docs/how-to/wasm.md shows how to use it.
 *
 * A position is a *state*: a record of 64 bytes (docs/reference/state.md). The functions never change a given state. The
 * names and places of the fields come from the module, so they are those of Python.
 */

/** @typedef {Uint8Array<ArrayBuffer>} State */
/** @typedef {Record<string, any>} Layout Fields of records, action numbers and ranges, as tools/wasm/layout.py writes them */
/** @typedef {Record<string, any>} Exports */

/**
 * The fields of `wotd_env.Rules`, and two arguments of `wotd_env.Game`.
 * @typedef {{players?: number, spaces?: number, powers?: string, immunity?: boolean, dead_pieces?: number,
 *   colors?: string[] | "random" | null, start?: number | string, max_turns?: number, skip_forced?: boolean,
 *   encoding?: string}} Options
 */

/** Options with all fields. @typedef {Required<Options>} Rules */

/**
 * The fields of a state. `pieces` has the space of every piece by seat and path, `dice` has -1 for unrolled dice.
 * @typedef {{rng: bigint, dead: number[], turn: number, player: number, phase: number, rolls_left: number,
 *   dice: number[], pieces: number[][], color: number[], used: number, perfection: number, expired: number,
 *   players: number}} Fields
 */

/** A learned value function: the weights of a network. @typedef {Uint8Array} Value */

/** The values of actions for the seat to act. @typedef {{value: number, actions: Map<number, number>, best: number}} Plan */

/** The typed array of a NumPy type. The records and WebAssembly are little-endian, as all platforms with browsers. */
const KINDS = /** @type {const} */ ({
  "|i1": Int8Array,
  "|u1": Uint8Array,
  "<u2": Uint16Array,
  "<u8": BigUint64Array,
  "<i8": BigInt64Array,
});

/**
 * Load the module.
 * @param {BufferSource | Response | Promise<BufferSource | Response>} source of wotd.wasm, such as `fetch("wotd.wasm")`
 */
export async function load(source) {
  const given = await source;
  if (given instanceof Response && !given.ok)
    throw new Error(`${given.url}: ${given.status} ${given.statusText}`);
  const module = await WebAssembly.compile(given instanceof Response ? await given.arrayBuffer() : given);
  const [about] = WebAssembly.Module.customSections(module, "wotd");
  const layout = JSON.parse(new TextDecoder().decode(about));
  return new Engine((await WebAssembly.instantiate(module)).exports, layout);
}

/** The loaded module. All games share its memory, which has room for one state. */
export class Engine {
  /** @type {Game | null} */
  current = null; // the one whose rules are in the memory
  /** @type {Value | null} */
  value = null; // the one in the memory

  /** @param {Exports} exports @param {Layout} layout */
  constructor(exports, layout) {
    this.exports = exports;
    this.layout = layout;
    /** The numbers of the actions by name. @type {Record<string, number>} */
    this.actions = layout.actions;
    /** The names of the phases by number. @type {string[]} */
    this.phases = layout.phases;
    this.bytes = new Uint8Array(exports.memory.buffer);
    this.state = this.bytes.subarray(exports.states.value).subarray(0, layout.state.size);
  }

  /** Return the game with the given rules; other fields have their default values. @param {Options} options */
  game(options = {}) {
    return new Game(this, options);
  }

  /**
   * Return an array in the memory.
   * @template T @param {string} name @param {new (buffer: ArrayBuffer, at: number, length: number) => T} Kind
   * @param {number} length
   */
  view(name, Kind, length) {
    return new Kind(this.exports.memory.buffer, this.exports[name].value, length);
  }
}

/** The rules of a game, and the functions of its states. */
export class Game {
  /** @param {Engine} engine @param {Options} options */
  constructor(engine, options) {
    this.engine = engine;
    const { num_actions, observations, config } = engine.layout;
    const { rules, numbers } = configure(engine.layout, options);
    this.rules = rules;
    const { players, spaces, powers, immunity, encoding } = rules;
    /** @type {number} */
    this.numActions = num_actions[players];
    /** @type {number} */
    this.observed = observations[encoding][players][spaces][Number(powers !== "none")][Number(immunity)];
    this.config = writeFields(config, new Uint8Array(config.size), numbers);
  }

  /** Return the fields of a state. @param {State} state @returns {Fields} */
  read(state) {
    return /** @type {any} */ (readFields(this.engine.layout.state, state));
  }

  /** Return a copy of a state with other values of some fields. @param {State} state @param {Partial<Fields>} fields */
  write(state, fields) {
    return writeFields(this.engine.layout.state, state.slice(), fields);
  }

  /**
   * Return the first decision of the game with a seed, as `Game.reset(1, seed)` in Python.
   * @param {number | bigint} seed @param {number} [starter] a seat; by default the rules determine it
   */
  reset(seed, starter) {
    return this.roll(this.unrolled(seed, starter));
  }

  /** Return the game with a seed before its first roll. @param {number | bigint} seed @param {number} [starter] */
  unrolled(seed, starter = -1) {
    return this.after(new Uint8Array(this.engine.state.length), (run) => run.new_game(BigInt(seed), starter));
  }

  /** Return the first decision of the next game after an ended one. @param {State} state */
  restart(state) {
    return this.roll(this.after(state, (run) => run.next_game()));
  }

  /**
   * Return the dice of the roll-off that decides the starting player (R1): by round and seat, null for other seats.
   * @param {number | bigint} seed @returns {(number[] | null)[][]}
   */
  rollOff(seed) {
    const { players, start } = this.rules;
    /** @type {(number[] | null)[][]} */
    const rounds = [];
    this.after(this.unrolled(seed, 0), (run) => {
      let seats = 2 ** players - 1;
      while (typeof start === "string" && seats & (seats - 1)) {
        const rolling = seats;
        seats = run.roll_off_round(seats);
        const dice = [...this.engine.view("roll_off", Int8Array, 5 * players)];
        const rolled = (/** @type {number} */ seat) => dice.slice(5 * seat, 5 * seat + 5);
        rounds.push(
          Array.from({ length: players }, (_, seat) => ((rolling >> seat) & 1 ? rolled(seat) : null)),
        );
      }
    });
    return rounds;
  }

  /** Return the legal actions, ascending. @param {State} state @returns {number[]} */
  legalActions(state) {
    this.after(state, (run) => run.legal_actions());
    const mask = this.engine.view("mask", Int8Array, this.numActions);
    const actions = [];
    for (let action = 0; action < mask.length; action++) if (mask[action]) actions.push(action);
    return actions;
  }

  /** Take a legal action, roll if due, and return the next decision. @param {State} state @param {number} action */
  step(state, action) {
    return this.after(state, (run) => run.step(action) >= 0 || refuse(action));
  }

  /** Take a legal action, and stop before the next roll. @param {State} state @param {number} action */
  decide(state, action) {
    return this.after(state, (run) => run.decide(action) || refuse(action));
  }

  /**
   * Roll the dice if a roll is due, and return the next decision.
   * @param {State} state @param {number[]} [dice] the five dice after the roll, ascending; by default random
   */
  roll(state, dice) {
    if (!dice) return this.after(state, (run) => run.roll());
    if (this.phase(state) !== "chance") throw new RangeError("no roll is due");
    return this.after(this.write(state, { dice }), (run) => run.apply_roll());
  }

  /** Return the phase: "chance", "keep", "move", "extra" or "over". @param {State} state */
  phase(state) {
    return this.engine.phases[this.read(state).phase];
  }

  /** Return the observation of a seat, by default of the one to act. @param {State} state @param {number} [seat] */
  observe(state, seat = this.read(state).player) {
    this.after(state, (run) => run.observe(seat));
    return this.engine.view("observation", Int8Array, this.observed).slice();
  }

  /** Return the points of every seat. @param {State} state @returns {number[]} */
  scores(state) {
    this.after(state, (run) => run.write_scores());
    return [...this.engine.view("scores", Int32Array, this.rules.players)];
  }

  /** Return the reward of every seat, zeros before the end. @param {State} state @returns {number[]} */
  rewards(state) {
    this.after(state, (run) => run.write_rewards());
    return [...this.engine.view("rewards", Float32Array, this.rules.players)];
  }

  /** Play random actions to the end, and return the final state. @param {State} state */
  playout(state) {
    return this.after(state, (run) => run.playout());
  }

  /**
   * Return the exact values of the actions in the rest of the turn, given a value of the positions after the turn.
   * @param {State} state @param {Value | null} [value] of `learned`; by default the hand-made value @returns {Plan}
   */
  plan(state, value = null) {
    const { engine } = this;
    if (value && engine.value !== value) engine.bytes.set(value, engine.exports.network.value);
    if (value) engine.value = value;
    let best = 0;
    this.after(state, (run) => {
      best = run.plan(Number(value !== null));
    });
    const values = engine.view("action_values", Float32Array, this.numActions);
    const actions = new Map([...values.entries()].filter(([, each]) => each > -Infinity));
    const good = [...actions].find(([, each]) => each >= Math.fround(best - engine.layout.tie));
    return { value: best, actions, best: good ? good[0] : -1 };
  }

  /** Return the learned value function in a file of `tools.wasm.weights`. @param {ArrayBuffer|Uint8Array} file @returns {Value} */
  learned(file) {
    const bytes = new Uint8Array(file);
    const end = bytes.indexOf(10); // a line break
    for (const [name, made] of Object.entries(JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))))) {
      const given = /** @type {Record<string, any>} */ (this.rules)[name];
      if (given !== made) throw new RangeError(`the value is for ${name} ${made}, but the game has ${given}`);
    }
    return bytes.subarray(end + 1);
  }

  /** Call functions of the module with this state in the memory; return the new state. @param {State} state @param {(run: Exports) => unknown} call */
  after(state, call) {
    const { engine } = this;
    if (engine.current !== this) engine.bytes.set(this.config, engine.exports.config.value);
    engine.current = this;
    engine.state.set(state);
    call(engine.exports);
    return /** @type {State} */ (engine.state.slice());
  }
}

/** @param {number} action */
function refuse(action) {
  throw new RangeError(`action ${action} is illegal; legalActions() lists the legal ones`);
}

/**
 * Return all options, and the same as numbers. Missing options have their default values.
 * @param {Layout} layout @param {Record<string, any>} given @returns {{rules: Rules, numbers: Record<string, any>}}
 */
function configure({ options, dead_pieces, elements }, given) {
  const unknown = Object.keys(given).find((name) => !(name in options));
  if (unknown) throw new RangeError(`unknown option ${unknown}; known: ${Object.keys(options).join(", ")}`);
  const defaults = Object.entries(options).map(([name, option]) => [name, option.default]);
  const rules = { ...Object.fromEntries(defaults), ...given };
  const { players, spaces, colors } = rules;
  /** @type {Record<string, number>} */
  const limits = { dead_pieces: dead_pieces[players]?.[spaces], start: players - 1 };
  /** @type {Record<string, any>} */
  const numbers = {};
  for (const [name, { least, most = limits[name], values = {} }] of Object.entries(options)) {
    const [value, text] = [rules[name], JSON.stringify(rules[name])];
    const listed = Object.hasOwn(values, text) || (name === "colors" && Array.isArray(value));
    const range = most === undefined ? [] : [`${least} to ${most}`];
    if (!listed && !(Number.isInteger(value) && value >= least && value <= most))
      throw new RangeError(`${name} must be ${[...Object.keys(values), ...range].join(" or ")}, got ${text}`);
    numbers[name] = values[text] ?? value;
  }
  const named = Array.isArray(colors) ? colors.map((name) => elements.indexOf(name)) : [];
  if (
    Array.isArray(colors) &&
    (named.includes(-1) || new Set(named).size !== players || named.length !== players)
  )
    throw new RangeError(
      `colors must be ${players} different names among ${elements.join(", ")}, got ${colors}`,
    );
  const unnamed = [...elements.keys()].filter((color) => !named.includes(color));
  return {
    rules,
    numbers: { ...numbers, colors: [...named, ...unnamed], random_colors: colors === "random" },
  };
}

/** Return a field of a record as a new typed array. @param {any} field @param {Uint8Array} bytes */
function numbersIn({ at, kind, shape }, bytes) {
  const Kind = KINDS[/** @type {keyof typeof KINDS} */ (kind)];
  const length = shape.reduce((/** @type {number} */ size, /** @type {number} */ axis) => size * axis, 1);
  return new Kind(bytes.slice(at, at + length * Kind.BYTES_PER_ELEMENT).buffer);
}

/** Return the fields of a record as numbers and arrays. @param {Layout} record @param {Uint8Array} bytes */
function readFields(record, bytes) {
  const read = (/** @type {any} */ field) => {
    const numbers = [...numbersIn(field, bytes)];
    const [rows, columns] = field.shape;
    if (columns) return Array.from({ length: rows }, (_, i) => numbers.slice(i * columns, (i + 1) * columns));
    return rows ? numbers : numbers[0];
  };
  return Object.fromEntries(Object.entries(record.fields).map(([name, field]) => [name, read(field)]));
}

/**
 * Set fields of a record, and return the record. Names of other fields are ignored.
 * @template {Uint8Array} T @param {Layout} record @param {T} bytes @param {Record<string, any>} values
 */
function writeFields(record, bytes, values) {
  for (const [name, field] of Object.entries(record.fields)) {
    if (!(name in values)) continue;
    const numbers = /** @type {any} */ (numbersIn(field, bytes));
    const cast = /** @type {(value: any) => any} */ (typeof numbers[0] === "bigint" ? BigInt : Number);
    numbers.set([values[name]].flat(2).map(cast));
    bytes.set(new Uint8Array(numbers.buffer), field.at);
  }
  return bytes;
}
