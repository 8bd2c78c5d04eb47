import { type Cause, createRootCause } from '#kernel';

/** For events whose cause does not matter. */
export const TEST_CAUSE: Cause = createRootCause('test', 'test');
