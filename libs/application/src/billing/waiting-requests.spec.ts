/** What a request that has waited for money holds. */
import { expect, test } from '@jest/globals';
import { type Accounts, PayerFactory } from '#application';
import { type AccountCommand, accountDecider } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { money, Rejection } from '#kernel';
import { createTestRuntime, SystemClock } from '#testing';

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const partial = (amount: string) => ({ minAmount: money.parseUsd(amount), divisor: 64n });

test('a request that has waited holds a part by the current measurements', async () => {
  const commands: AccountCommand[] = [];
  const run: Accounts['run'] = async (_, command) => {
    commands.push(command);
    if (commands.length === 1) throw new Rejection('insufficient_balance', 'Insufficient balance', {}, true);
    return { events: [], state: accountDecider.getInitialState(), revision: 0, position: 0n };
  };
  const dependencies = {
    clock: new SystemClock(),
    getProcessId: () => 'gateway-1',
    events: new MemoryEventStore(),
    runtime: createTestRuntime(),
  };
  const factory = new PayerFactory({ accounts: { run } } as never, dependencies, { maxWaiting: 1, maxWaitMs: 60_000 });
  const request = {
    holdId: 'r',
    query,
    priceList: 'p',
    lifetimeMs: 1_000,
    minAmount: money.parseUsd('1'),
    maxAmount: money.parseUsd('1'),
    partial: partial('0.5'),
    updatePartial: () => partial('0.2'),
  };
  await expect(factory.forCaller({ accountId: 'a', keyId: null }).hold(request)).rejects.toThrow('running request');
  expect(commands.map((command) => command.type === 'HoldFunds' && command.data.partialHold)).toEqual([
    partial('0.5'),
    partial('0.2'),
  ]);
});
