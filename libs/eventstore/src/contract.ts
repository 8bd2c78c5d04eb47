/**
 * The contract that this program follows when it writes: which types and versions of events it may write, and how it
 * uses the tables that other programs use too. Every append names it, and the database stores which contracts it
 * accepts (docs/changing.md).
 */
export const WRITE_CONTRACT = 2;
