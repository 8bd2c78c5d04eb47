import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { type KeyAccess, type KeyCreated, type ResetPeriod, UNRESTRICTED_ACCESS } from '#domain';
import type { Cause } from '#kernel';
import { Clock } from '../clock.ts';
import { Secrets } from '../secrets.ts';
import { Accounts } from '../streams.ts';
import { generateCreditId, toAccountIds } from './credit-id.ts';

const KEY_ID_BYTES = 12;

export interface OpenedAccount {
  /** Only for the owner of the account; it is not stored. */
  readonly creditId: string;
  readonly accountId: string;
  readonly apiKey: string;
  readonly keyId: string;
  readonly position: bigint;
}

/** Opens an account with a first key, named "Default". */
export class OpenAccount extends Command<OpenedAccount> {
  constructor(readonly cause: Cause) {
    super();
  }
}

@CommandHandler(OpenAccount)
export class OpenAccountHandler implements ICommandHandler<OpenAccount> {
  constructor(
    private readonly accounts: Accounts,
    private readonly secrets: Secrets,
    private readonly clock: Clock,
  ) {}

  async execute({ cause }: OpenAccount): Promise<OpenedAccount> {
    const creditId = generateCreditId(this.secrets.randomness);
    const [accountId] = toAccountIds(creditId, this.secrets);
    const { apiKey, key } = generateApiKey(this.secrets, { name: 'Default' });
    const command = { type: 'OpenAccount', data: { key, at: this.clock.now() } } as const;
    const { position } = await this.accounts.run(accountId, command, cause);
    return { creditId, accountId, apiKey, keyId: key.keyId, position };
  }
}

interface ApiKeyParams extends Partial<KeyAccess> {
  readonly name: string;
  /** Pico-USD. */
  readonly limit?: string | null;
  readonly resetPeriod?: ResetPeriod | null;
  readonly expireAt?: string | null;
}

/** Generates an API key: the secret for its owner, and the data that its event stores. */
export function generateApiKey(
  secrets: Secrets,
  { name, limit = null, resetPeriod = null, expireAt = null, ...access }: ApiKeyParams,
) {
  const apiKey = secrets.generateApiKey();
  const keyId = Buffer.from(secrets.randomness.generateBytes(KEY_ID_BYTES)).toString('hex');
  const key: Omit<KeyCreated['data'], 'at'> = {
    keyId,
    name,
    hash: secrets.hash(apiKey),
    secret: secrets.seal(apiKey),
    limit,
    resetPeriod,
    expireAt,
    ...UNRESTRICTED_ACCESS,
    ...access,
  };
  return { apiKey, key };
}
