/** What is compared, as the metrics and the tables name it. */
export const GATEWAY = 'countinghouse';
export const PEER = 'portkey';
export const UPSTREAM = 'upstream itself';
