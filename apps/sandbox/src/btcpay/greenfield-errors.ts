import { HttpError } from '../router.ts';

/** Creates an error in the format of the Greenfield API. */
export function createError(status: number, code: string, message: string): HttpError {
  return new HttpError(status, { code, message });
}

export function invalidFieldError(path: string, message: string): HttpError {
  return new HttpError(422, [{ path, message }]);
}
