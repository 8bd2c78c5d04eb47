import { HttpError } from '../router.ts';

/** An error as the Greenfield API prints it. */
export function createError(status: number, code: string, message: string): HttpError {
  return new HttpError(status, { code, message });
}

/** As it says that a field is wrong. */
export function invalidFieldError(path: string, message: string): HttpError {
  return new HttpError(422, [{ path, message }]);
}
