/**
 * Thrown for a command that the rules do not allow, mostly by `decide`. One filter at the HTTP edge converts its code
 * into a response. An expected outcome is an event instead; a technical failure is any other exception.
 */
export class Rejection<Code extends string = string> extends Error {
  readonly code: Code;
  /** Values for the response, such as the required and the available amount. Amounts are decimal USD strings. */
  readonly details: Readonly<Record<string, string>>;
  /** Whether the same command may be accepted soon, without any other change than the end of running requests. */
  readonly isTemporary: boolean;

  constructor(code: Code, message: string, details: Readonly<Record<string, string>> = {}, isTemporary = false) {
    super(message);
    this.name = 'Rejection';
    this.code = code;
    this.details = details;
    this.isTemporary = isTemporary;
  }

  /** Returns the same rejection with another message and additional details. */
  withMessage(message: string, details: Readonly<Record<string, string>>): Rejection<Code> {
    return new Rejection(this.code, message, { ...this.details, ...details }, this.isTemporary);
  }
}
