import { Refusal } from '../router.ts';

/** An error as the Greenfield API prints it. */
export function refusal(status: number, code: string, message: string): Refusal {
  return new Refusal(status, { code, message });
}

/** As it says that a field is wrong. */
export function invalid(path: string, message: string): Refusal {
  return new Refusal(422, [{ path, message }]);
}
