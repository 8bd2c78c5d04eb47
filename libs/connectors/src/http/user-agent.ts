/** Services that use Cloudflare, and some others, reject requests without a user agent. */
export const USER_AGENT = 'Countinghouse/1';
