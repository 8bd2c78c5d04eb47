/** API keys of version 1 permit every model, cannot be blocked, and have no tags. */
import type { Upcaster } from '#kernel';
import { UNRESTRICTED_ACCESS } from '../events.ts';

export const upcastKeyCreatedV1: Upcaster = (data) => ({ ...data, ...UNRESTRICTED_ACCESS });

export const upcastKeyUpdatedV1: Upcaster = (data) => data;
