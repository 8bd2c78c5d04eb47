/** Accounts that the operator opens and lists. */

import type pg from 'pg';
import { generateCreditId, toAccountIds } from '#application';
import { isAccountName, toAccountNameStreamId } from '#domain';
import { type Foundation, StartError } from '#foundation';
import { formatUsd, type PicoUsd } from '#kernel';
import { nodeRandomness } from '#runtime';
import { READ_MODELS_LAG, waitForReadModels } from './find-account.ts';
import { withOperator } from './operator.ts';
import { runAsOperator } from './run-as-operator.ts';
import { defineTable } from './table.ts';
import { withPool } from './with-pool.ts';

type Print = (line: string) => void;

const BATCH_SIZE = 1_000;

/**
 * Opens an account without API keys, and gives it a name. Prints its `credit_id`, which is stored nowhere.
 * @throws StartError if the name is invalid or taken
 */
export async function createAccount(
  foundation: Foundation,
  name: string,
  actorName: string | undefined,
  print: Print,
): Promise<void> {
  if (!isAccountName(name))
    throw new StartError(
      '--name must begin with a letter, and consist of up to 63 letters, digits, dots, dashes and underscores.',
    );
  await withOperator(foundation, actorName, async ({ streams, secrets, actor }) => {
    const nameId = toAccountNameStreamId(name);
    if (await streams.accountNames.read(nameId)) throw new StartError(`An account named "${name}" already exists.`);
    const creditId = generateCreditId(nodeRandomness);
    const [accountId] = toAccountIds(creditId, secrets);
    const at = new Date().toISOString();
    // If the process dies between the two events, an empty account remains that nobody can use, and the name is free.
    await runAsOperator(streams.accounts, accountId, { type: 'OpenAccount', data: { at } }, { actor });
    const data = { name, accountId, actor, at };
    await runAsOperator(streams.accountNames, nameId, { type: 'NameAccount', data }, { actor });
    print(`account    ${name}`);
    print(`id         ${accountId}`);
    print(`credit_id  ${creditId}`);
    print('The credit_id manages the keys of the account over the API. It is not stored: save it now.');
  });
}

interface AccountRow {
  readonly name: string | null;
  readonly account_id: string;
  readonly available: string;
  readonly held: string;
  readonly spent: string;
  readonly keys: string;
}

/**
 * Lists accounts with their balance, what is held, what their API keys have spent, and the number of keys that are not
 * revoked, from the read models.
 * @param includesUnnamed also lists the accounts that were opened over the API
 */
export async function printAccounts(foundation: Foundation, includesUnnamed: boolean, print: Print): Promise<void> {
  await withPool(foundation.databaseUrl, async (pool) => {
    if (!(await waitForReadModels(foundation, pool))) print(READ_MODELS_LAG);
    const { heading, formatRow } = defineTable(
      ['account', 40],
      ['balance', -20],
      ['held', -20],
      ['spent', -20],
      ['keys', -6],
    );
    print(heading);
    for await (const row of readAccounts(pool, includesUnnamed)) {
      const amounts = [row.available, row.held, row.spent].map((amount) => formatUsd(BigInt(amount) as PicoUsd));
      print(formatRow(row.name ?? row.account_id, ...amounts, row.keys));
    }
    if (includesUnnamed) return;
    const { rows } = await pool.query<{ count: string }>('select count(*) from books.balances where name is null');
    if (rows[0]?.count !== '0') print(`and ${rows[0]?.count} accounts without a name, which --all lists`);
  });
}

async function* readAccounts(pool: pg.Pool, includesUnnamed: boolean): AsyncGenerator<AccountRow> {
  let after = ['', '00000000-0000-0000-0000-000000000000'];
  for (;;) {
    const { rows } = await pool.query<AccountRow & { readonly sort_name: string }>({
      name: 'list-accounts',
      text: `select b.name, b.account_id, b.available, b.held, coalesce(k.spent, 0) as spent, coalesce(k.keys, 0) as keys,
                    coalesce(lower(b.name), '~') collate "C" as sort_name
               from books.balances b
               left join lateral (
                 select sum(used_in_all) as spent, count(*) filter (where deleted_at is null) as keys
                   from books.keys where keys.account_id = b.account_id) as k on true
              where ($1 or b.name is not null)
                and (coalesce(lower(b.name), '~') collate "C", b.account_id) > ($2, $3::uuid)
              order by sort_name, b.account_id limit $4`,
      values: [includesUnnamed, ...after, BATCH_SIZE],
    });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH_SIZE) return;
    after = [last.sort_name, last.account_id];
  }
}
