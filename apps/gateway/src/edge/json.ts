/** Content type of answers whose JSON is already text. */
export const JSON_TYPE = 'application/json; charset=utf-8';
