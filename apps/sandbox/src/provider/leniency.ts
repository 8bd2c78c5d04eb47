/** Directives with `lenient=true`, for which a provider does not apply its rules for requests. */
import { HttpError } from '../router.ts';

/** Applies a rule of a provider for requests, which throws an HttpError to reject the request. */
export type ApplyRule = (rule: () => void) => void;

const applyStrictly: ApplyRule = (rule) => rule();

const ignoreRule: ApplyRule = (rule) => {
  try {
    rule();
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
  }
};

/**
 * Reads a request with the rules of its provider. If they reject it, and its last directive is lenient, it is read
 * without them: what the sandbox needs in order to respond is still required, such as messages.
 * @param body the JSON text of the request, because the place of the directive is not known before a request is read
 * @throws HttpError
 */
export function readWithRules<T>(body: string, read: (applyRule: ApplyRule) => T): T {
  try {
    return read(applyStrictly);
  } catch (error) {
    if (!(error instanceof HttpError) || !hasLenientDirective(body)) throw error;
    return read(ignoreRule);
  }
}

function hasLenientDirective(body: string): boolean {
  const start = body.lastIndexOf('[[sandbox');
  return start >= 0 && /^[^\]]*\slenient=true[\s\]]/.test(body.slice(start));
}
