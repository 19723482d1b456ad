/** Rewards, from -1/(n-1) to 1, as shares of the win, from 0 to 1. */

/** Return a reward as a share of the win. @param {number} reward @param {number} players */
export const winShare = (reward, players) => (1 + (players - 1) * reward) / players;

/** Return a difference of rewards as a difference of shares. @param {number} difference @param {number} players */
export const shareDifference = (difference, players) => (difference * (players - 1)) / players;
