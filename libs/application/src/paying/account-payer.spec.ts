import { expect, test } from '@jest/globals';
import { type Accounts, Payers, SystemClock } from '#application';
import { type AccountCommand, accountDecider } from '#domain';
import { money, StoreUnavailable } from '#kernel';

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const request = {
  holdId: 'r',
  query,
  atLeast: money.usd('1'),
  atMost: money.usd('1'),
  priceList: 'p',
  lifetimeMs: 1_000,
};

/** What is asked of the account when a process with this owner takes a hold. */
async function taken(owner: () => string): Promise<readonly AccountCommand[]> {
  const commands: AccountCommand[] = [];
  const run: Accounts['run'] = async (_, command) => {
    commands.push(command);
    return { events: [], state: accountDecider.initial(), revision: 0, position: 0n };
  };
  const payer = new Payers({ accounts: { run } } as never, new SystemClock(), owner).of({
    accountId: 'a',
    keyId: null,
  });
  await payer.take(request).catch((error) => {
    if (error instanceof StoreUnavailable) throw error;
  });
  return commands;
}

test('a hold has the name of its process, by which it is freed when that has died', async () => {
  expect(await taken(() => 'gateway-1')).toMatchObject([{ type: 'HoldFunds', data: { owner: 'gateway-1' } }]);
});

test('a process that others may take for dead holds nothing: its holds would be freed while they are used', async () => {
  const away = () => {
    throw new StoreUnavailable('this process cannot show that it is alive');
  };
  await expect(taken(away)).rejects.toBeInstanceOf(StoreUnavailable);
});
