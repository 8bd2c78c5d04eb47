/** Definitions of examples and of their expected outcomes. */

/** A language for which SDKs exist. */
export type Language = 'Node' | 'Python';

/** A rejection with which the gateway says what it does not serve. */
export interface ExpectedRejection {
  readonly status: number;
  /** What the message or the parameter of the error contains. */
  readonly names: string;
}

export interface Example {
  /** The area and the feature, such as `chat: streaming`. The scripts know their examples by this name. */
  readonly name: string;
  /** The method and path of the request that decides, such as `GET /v1/files/{id}`. */
  readonly request: string;
  readonly outcome: 'works' | ExpectedRejection;
  /** The only language whose SDK has what the example uses; undefined if all have it. */
  readonly only?: Language;
}

/** Examples of one request that end as documented. */
export function works(request: string, ...names: readonly string[]): readonly Example[] {
  return names.map((name) => ({ name, request, outcome: 'works' }));
}

/** An example that is rejected with 400 by the name of what is not supported. */
export function rejects(request: string, name: string, names: string, status = 400): Example {
  return { name, request, outcome: { status, names } };
}

/** An example of an endpoint that does not exist. The error names its method and path up to the first variable. */
export function lacks(request: string, name: string, status = 404): Example {
  const [names = ''] = request.split('{');
  return { name, request, outcome: { status, names } };
}

/** Marks examples that only the SDK of one language has. */
export function only(language: Language, ...examples: readonly Example[]): readonly Example[] {
  return examples.map((example) => ({ ...example, only: language }));
}
