/** The process cannot start or continue. The message is one sentence for the operator. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}
