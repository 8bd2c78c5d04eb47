import { beforeEach, describe, expect, test } from '@jest/globals';
import { ActionRequiredError } from '#kernel';
import { CostMonitor } from './cost-monitor.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const CALL = { of: 'deepseek/deepseek-r1', creditor: 'openrouter', usage: {}, cost: '2800000000' };

let now = 0;
let reports: string[] = [];
let monitor: CostMonitor;
beforeEach(() => {
  now = 0;
  reports = [];
  const reportError = (problem: string, error: unknown) => {
    expect(error).toBeInstanceOf(ActionRequiredError);
    reports.push(problem);
  };
  monitor = new CostMonitor({ reportError, now: () => now });
});

const DIFFERENT = 'openrouter reports another cost for deepseek/deepseek-r1 than the catalogue';
const recordCost = (reportedCost: string) => monitor.record({ ...CALL, reportedCost }, {});

describe('a cost that differs from the calculated one', () => {
  test('is reported once for a model of a provider, and each call counts', () => {
    recordCost('500000000000');
    recordCost('500000000000');
    monitor.record({ ...CALL, of: 'other', reportedCost: '1' }, {});

    expect(reports).toEqual([DIFFERENT, 'openrouter reports another cost for other than the catalogue']);
    expect(monitor.list()).toEqual([
      { model: 'deepseek/deepseek-r1', provider: 'openrouter', subject: 'cost', calls: 2 },
      { model: 'other', provider: 'openrouter', subject: 'cost', calls: 1 },
    ]);
  });

  test('is reported again after a day', () => {
    recordCost('500000000000');
    now = DAY_MS - 1;
    recordCost('500000000000');
    expect(reports).toHaveLength(1);
    now = DAY_MS;
    recordCost('500000000000');
    expect(reports).toEqual([DIFFERENT, DIFFERENT]);
  });

  test('is reported again after the costs have agreed', () => {
    recordCost('500000000000');
    recordCost(CALL.cost);
    expect(reports).toHaveLength(1);
    recordCost('500000000000');
    expect(reports).toEqual([DIFFERENT, DIFFERENT]);
  });

  test('is not reported if the provider reports no cost, or one within 1 %', () => {
    monitor.record(CALL, {});
    recordCost('2828000000');
    recordCost('2772000000');
    expect(reports).toEqual([]);
    expect(monitor.list()).toEqual([]);
  });
});

test('a condition without a price and a cost that is not plausible are reported once each', () => {
  for (let i = 0; i < 2; i++) monitor.record(CALL, { isImplausible: true, terms: { service_tier: 'priority' } });
  expect(reports).toEqual([
    'openrouter reports a cost for deepseek/deepseek-r1 that is not plausible',
    'openrouter served deepseek/deepseek-r1 with service_tier priority, which the catalogue has no price for',
  ]);
  expect(monitor.list().map(({ subject, calls }) => [subject, calls])).toEqual([
    ['implausible cost', 2],
    ['service_tier priority', 2],
  ]);
});

test('cache writes for an hour that were not requested are reported once', () => {
  monitor.record({ ...CALL, usage: { cacheWriteHour: 7 } }, {}, { requestsHourCache: true });
  expect(reports).toEqual([]);
  for (let i = 0; i < 2; i++) monitor.record({ ...CALL, usage: { cacheWriteHour: 7 } }, {});
  expect(reports).toEqual(['openrouter cached input of deepseek/deepseek-r1 for an hour, which was not requested']);
});

test('tokens that only the total includes are reported once', () => {
  for (const uncountedTokens of [undefined, 0, 7, 8])
    monitor.record(CALL, uncountedTokens === undefined ? {} : { uncountedTokens });
  expect(reports).toEqual(['openrouter reports more tokens in all for deepseek/deepseek-r1 than it lists']);
  expect(monitor.list()).toMatchObject([{ subject: 'uncounted tokens', calls: 2 }]);
});

test('the number of observations is limited', () => {
  for (let i = 0; i < 2_100; i++) monitor.record(CALL, { terms: { service_tier: `tier-${i}` } });
  expect(monitor.list()).toHaveLength(2_000);
});
