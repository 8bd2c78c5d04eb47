/** Upper bound for an image at full detail. The catalogue has the bounds of models that count more. */
export const MAX_TOKENS_PER_IMAGE = 5_000;
