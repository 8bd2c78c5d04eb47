/** Services behind Cloudflare, and some others, refuse a request that does not say who asks. */
export const USER_AGENT = 'Countinghouse/1';
