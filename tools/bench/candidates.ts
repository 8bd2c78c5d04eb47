/** Names of the compared candidates in metrics and tables. */
export const GATEWAY = 'countinghouse';
export const PEER = 'portkey';
export const UPSTREAM = 'upstream alone';
