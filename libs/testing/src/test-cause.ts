import { type Cause, createRootCause } from '#kernel';

/** The cause of facts whose cause does not matter. */
export const TEST_CAUSE: Cause = createRootCause('test', 'test');
