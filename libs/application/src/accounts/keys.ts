import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { KeyUpdated, ResetPeriod } from '#domain';
import { money, type PicoUsd } from '#kernel';
import { Clock } from '../clock.ts';
import { Secrets } from '../secrets.ts';
import { Accounts } from '../streams.ts';
import { mintKey } from './open-account.ts';

export interface KeyFields {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly resetPeriod: ResetPeriod | null;
  readonly expireAt: string | null;
}

interface ChangedKey {
  readonly keyId: string;
  readonly position: bigint;
}

export class CreateKey extends Command<ChangedKey & { readonly apiKey: string }> {
  constructor(
    readonly accountId: string,
    readonly fields: KeyFields,
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
  ) {}

  async execute({ accountId, fields }: CreateKey) {
    const limit = fields.limit === null ? null : money.toJson(fields.limit);
    const { apiKey, key } = mintKey(this.secrets, { ...fields, limit });
    const at = this.clock.now();
    const { position } = await this.accounts.run(accountId, { type: 'CreateKey', data: { key, at } });
    return { keyId: key.keyId, apiKey, position };
  }
}

/** Changes what is given; undefined leaves a field as it is. */
export class UpdateKey extends Command<ChangedKey> {
  constructor(
    readonly accountId: string,
    readonly keyId: string,
    readonly fields: Partial<KeyFields>,
  ) {
    super();
  }
}

@CommandHandler(UpdateKey)
export class UpdateKeyHandler implements ICommandHandler<UpdateKey> {
  constructor(
    private readonly accounts: Accounts,
    private readonly clock: Clock,
  ) {}

  async execute({ accountId, keyId, fields: { limit, ...fields } }: UpdateKey): Promise<ChangedKey> {
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    const cap = limit === undefined ? {} : { limit: limit === null ? null : money.toJson(limit) };
    const changes: Omit<KeyUpdated['data'], 'keyId' | 'at'> = { ...given, ...cap };
    const command = { type: 'UpdateKey', data: { keyId, changes, at: this.clock.now() } } as const;
    const { position } = await this.accounts.run(accountId, command);
    return { keyId, position };
  }
}

export class RevokeKey extends Command<ChangedKey> {
  constructor(
    readonly accountId: string,
    readonly keyId: string,
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

  async execute({ accountId, keyId }: RevokeKey): Promise<ChangedKey> {
    const command = { type: 'RevokeKey', data: { keyId, at: this.clock.now() } } as const;
    const { position } = await this.accounts.run(accountId, command);
    return { keyId, position };
  }
}
