export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Of an incomplete response, what arrived. Without comments, whose number depends on the speed of the host. */
  readonly text: string;
  /** With the comments that are sent while a stream waits. */
  readonly textWithComments: string;
  /** False if the connection was closed before the end. Only server-sent events may be incomplete. */
  readonly isComplete: boolean;
  /** The body, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every schema
  readonly body: any;
  /** The data of server-sent events: parsed JSON, and the text `[DONE]`. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly events: readonly any[];
}

/**
 * Reads a response to its end, or to where its stream was interrupted.
 * @param onText gets the text of a stream so far, whenever some of it arrives
 */
export async function readResponse(response: Response, onText?: (text: string) => void): Promise<TestResponse> {
  const { status, headers } = response;
  // An encrypted body has the content type of its plaintext, so it is not parsed.
  const type = headers.has('ehbp-response-nonce') ? '' : (headers.get('content-type') ?? '');
  const isStream = type.startsWith('text/event-stream');
  const { text: textWithComments, isComplete } = isStream
    ? await readText(response, onText)
    : { text: await response.text(), isComplete: true };
  const text = isStream ? textWithComments.replace(/^:.*\n\n/gm, '') : textWithComments;
  const body = type.includes('json') ? JSON.parse(text) : undefined;
  return { status, headers, text, textWithComments, isComplete, body, events: isStream ? parseEvents(text) : [] };
}

/**
 * Reads the text of a body to its end, or to where it was interrupted: then `isComplete` is false.
 * @param onText gets the text so far, whenever some of it arrives
 */
export async function readText(
  { body }: Response,
  onText?: (text: string) => void,
): Promise<Pick<TestResponse, 'text' | 'isComplete'>> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      onText?.(text);
    }
  } catch {
    return { text, isComplete: false }; // interrupted
  }
  return { text, isComplete: true };
}

function parseEvents(text: string): readonly unknown[] {
  const data = text.split('\n\n').filter((event) => event !== '');
  return data.map((event) =>
    event === 'data: [DONE]' ? '[DONE]' : JSON.parse(event.replace(/^(event: .*\n)?data: /, '')),
  );
}
