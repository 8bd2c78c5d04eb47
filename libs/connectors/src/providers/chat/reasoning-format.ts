/** Names of formats of reasoning. Clients send it back together with the reasoning, in `reasoning_details`. */

/**
 * Signatures of the Gemini API. OpenRouter names its own `google-gemini-v1`. They are not interchangeable: each has only
 * been verified by the service that made it.
 */
export const GEMINI_FORMAT = 'google-gemini-api-v1';
