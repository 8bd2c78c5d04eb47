/**
 * A forbidden command. Only `decide` throws it; one filter at the edge turns its code into an answer.
 * An expected outcome is an event instead, and broken machinery is any other exception.
 */
export class Rejection<Code extends string = string> extends Error {
  readonly code: Code;
  /** Facts for the answer, such as what was required and what is there. Amounts are decimal USD strings. */
  readonly details: Readonly<Record<string, string>>;

  constructor(code: Code, message: string, details: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = 'Rejection';
    this.code = code;
    this.details = details;
  }

  /** The same rejection in the caller's terms, with further details. */
  withMessage(message: string, details: Readonly<Record<string, string>>): Rejection<Code> {
    return new Rejection(this.code, message, { ...this.details, ...details });
  }
}
