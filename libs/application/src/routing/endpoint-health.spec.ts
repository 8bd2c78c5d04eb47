import { describe, expect, test } from '@jest/globals';
import type { Endpoint } from '#catalogue';
import { SystemClock } from '#testing';
import { EndpointHealth } from './endpoint-health.ts';

const MODEL = { id: 'v/m' };
const ENDPOINT = { slug: 'maker' } as Endpoint;

/** Records responses of 1,000 tokens with these speeds, in tokens per second. */
function createHealth(...speeds: readonly number[]): EndpointHealth {
  const health = new EndpointHealth(new SystemClock());
  for (const speed of speeds) health.recordDelivery(MODEL, ENDPOINT, 1_000, 1_000_000 / speed);
  return health;
}

describe('the maximum speed of an endpoint', () => {
  test('is unknown before its first response of at least 128 tokens', () => {
    const health = createHealth();
    expect(health.getMaxTokensPerSecond(MODEL, ENDPOINT)).toBeUndefined();
    health.recordDelivery(MODEL, ENDPOINT, 127, 1);
    expect(health.getMaxTokensPerSecond(MODEL, ENDPOINT)).toBeUndefined();
    health.recordDelivery(MODEL, ENDPOINT, 128, 2_000);
    expect(health.getMaxTokensPerSecond(MODEL, ENDPOINT)).toBe(64);
  });

  test('is that of the fast responses if only a few are fast', () => {
    const speeds = Array.from({ length: 128 }, (_, i) => (i % 32 === 0 ? 3_000 : 50));
    expect(createHealth(...speeds).getMaxTokensPerSecond(MODEL, ENDPOINT)).toBeCloseTo(3_000);
  });

  test('falls once the newest 128 responses were slower, at the next calculation', () => {
    const health = createHealth(3_000, 3_000, ...Array(128 + 16).fill(50));
    expect(health.getMaxTokensPerSecond(MODEL, ENDPOINT)).toBeCloseTo(50);
  });

  test.each([0, 0.01, 1])(
    'is finite and higher than that of any stream after a response within %s ms',
    (milliseconds) => {
      const health = createHealth(50);
      health.recordDelivery(MODEL, ENDPOINT, 128, milliseconds);
      const speed = health.getMaxTokensPerSecond(MODEL, ENDPOINT) as number;
      expect(speed).toBeGreaterThanOrEqual(128_000);
      expect(Number.isFinite(speed)).toBe(true);
    },
  );

  test('is separate for each model and endpoint', () => {
    const health = createHealth(50);
    expect(health.getMaxTokensPerSecond({ id: 'v/other' }, ENDPOINT)).toBeUndefined();
    expect(health.getMaxTokensPerSecond(MODEL, { slug: 'other' } as Endpoint)).toBeUndefined();
  });
});
