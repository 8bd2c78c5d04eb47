import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import {
  type AccountState,
  type ApiKeyRecord,
  type KeyAccess,
  type KeyUpdated,
  type ResetPeriod,
  toApiKeyRecord,
} from '#domain';
import { type Cause, type CommandOutcome, money, type PicoUsd } from '#kernel';
import { CatalogueService } from '../catalogue-service.ts';
import { Clock } from '../clock.ts';
import { Secrets } from '../secrets.ts';
import { Accounts } from '../streams.ts';
import { resolvePermittedModels } from './key-models.ts';
import { generateApiKey } from './open-account.ts';

export interface KeyFields extends KeyAccess {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly resetPeriod: ResetPeriod | null;
  readonly expireAt: string | null;
}

/** The key after the command. A read model that has reached `position` includes the change. */
interface ChangedKey {
  readonly key: ApiKeyRecord;
  readonly position: bigint;
}

export class CreateKey extends Command<ChangedKey & { readonly apiKey: string }> {
  constructor(
    readonly accountId: string,
    readonly fields: KeyFields,
    readonly cause: Cause,
  ) {
    super();
  }
}

@CommandHandler(CreateKey)
export class CreateKeyHandler implements ICommandHandler<CreateKey> {
  constructor(
    private readonly accounts: Accounts,
    private readonly secrets: Secrets,
    private readonly clock: Clock,
    private readonly catalogues: CatalogueService,
  ) {}

  async execute({ accountId, fields, cause }: CreateKey) {
    const limit = fields.limit === null ? null : money.toJsonAmount(fields.limit);
    const models = fields.models && resolvePermittedModels(fields.models, this.catalogues.current);
    const { apiKey, key } = generateApiKey(this.secrets, { ...fields, models, limit });
    const at = this.clock.now();
    const outcome = await this.accounts.run(accountId, { type: 'CreateKey', data: { key, at } }, cause);
    return { ...toChangedKey(key.keyId, outcome, at), apiKey };
  }
}

/** Changes the given fields; undefined leaves a field as it is. */
export class UpdateKey extends Command<ChangedKey> {
  constructor(
    readonly accountId: string,
    readonly keyId: string,
    readonly fields: Partial<KeyFields>,
    readonly cause: Cause,
  ) {
    super();
  }
}

@CommandHandler(UpdateKey)
export class UpdateKeyHandler implements ICommandHandler<UpdateKey> {
  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
    private readonly catalogues: CatalogueService,
  ) {}

  async execute({ accountId, keyId, fields: { limit, models, ...fields }, cause }: UpdateKey): Promise<ChangedKey> {
    const definedFields = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    const changes: Omit<KeyUpdated['data'], 'keyId' | 'at'> = {
      ...definedFields,
      ...(limit === undefined ? {} : { limit: limit === null ? null : money.toJsonAmount(limit) }),
      ...(models === undefined ? {} : { models: models && resolvePermittedModels(models, this.catalogues.current) }),
    };
    const at = this.clock.now();
    const command = { type: 'UpdateKey', data: { keyId, changes, at } } as const;
    return toChangedKey(keyId, await this.accounts.run(accountId, command, cause), at);
  }
}

export class RevokeKey extends Command<Pick<ChangedKey, 'position'>> {
  constructor(
    readonly accountId: string,
    readonly keyId: string,
    readonly cause: Cause,
  ) {
    super();
  }
}

@CommandHandler(RevokeKey)
export class RevokeKeyHandler implements ICommandHandler<RevokeKey> {
  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
  ) {}

  async execute({ accountId, keyId, cause }: RevokeKey) {
    const command = { type: 'RevokeKey', data: { keyId, at: this.clock.now() } } as const;
    const { position } = await this.accounts.run(accountId, command, cause);
    return { position };
  }
}

function toChangedKey(
  keyId: string,
  { state, position }: CommandOutcome<unknown, AccountState>,
  at: string,
): ChangedKey {
  const key = state.keys.get(keyId);
  if (!key) throw new Error(`key ${keyId} is missing from the state after its command`);
  return { key: toApiKeyRecord(keyId, key, at), position };
}
