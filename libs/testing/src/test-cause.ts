import { type Cause, createRootCause } from '#kernel';

/** The cause of facts whose cause does not matter. */
export const BY_A_TEST: Cause = createRootCause('test', 'test');
