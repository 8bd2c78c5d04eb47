import type { Streams } from '#application';
import { type AccountCommand, UNRESTRICTED_ACCESS } from '#domain';
import { createRootCause, Rejection, retryWhileUnavailable, toPicoUsd } from '#kernel';
import type { KeyTerms, OperatorStep, Step } from './plan.ts';
import { PRICE_LIST } from './simulated-gateway.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** The operator, who opens accounts, funds them and changes their keys, and tries again while the store is unavailable. */
export class SimulatedOperator {
  /** @param startMs when the simulation starts, in milliseconds since 1970 */
  constructor(
    private readonly process: SimulatedProcess,
    private readonly streams: Streams,
    private readonly startMs: number,
  ) {}

  async publishPrices(): Promise<void> {
    const data = { version: PRICE_LIST, lines: [], at: this.now };
    const command = { type: 'PublishPriceList', data } as const;
    await this.repeat(() => this.streams.priceLists.run(PRICE_LIST, command, createRootCause('operator', PRICE_LIST)));
  }

  async perform(step: OperatorStep): Promise<void> {
    const command = this.toCommand(step);
    const run = () =>
      this.streams.accounts.run(step.account, command, createRootCause('operator', JSON.stringify(step)));
    await this.repeat(run);
    // A command that is delivered twice has no further effect.
    if (step.step === 'adjust') await this.repeat(run);
    for (const [i, key] of step.step === 'open' ? step.keys.entries() : []) await this.createKey(step.account, i, key);
  }

  private async createKey(account: string, index: number, { limit, reset, expiresAtMs }: KeyTerms) {
    const key = {
      keyId: toKeyId(account, index),
      name: `key ${index}`,
      hash: `${account} ${index}`,
      secret: { key: '', box: '' },
      ...UNRESTRICTED_ACCESS,
      limit,
      resetPeriod: reset,
      expireAt: expiresAtMs === null ? null : new Date(this.startMs + expiresAtMs).toISOString(),
    };
    const command = { type: 'CreateKey', data: { key, at: this.now } } as const;
    await this.repeat(() => this.streams.accounts.run(account, command, createRootCause('operator', key.keyId)));
  }

  /** A rejection is a result; while the store is unavailable the operator tries again. */
  private async repeat(run: () => Promise<unknown>): Promise<void> {
    const options = { runtime: this.process.runtime, problem: 'the operator tries again', shouldRetry: () => true };
    await retryWhileUnavailable(run, options).catch((error) => {
      if (!(error instanceof Rejection)) throw error;
    });
  }

  private toCommand(step: OperatorStep): AccountCommand {
    const at = this.now;
    switch (step.step) {
      case 'open':
        return { type: 'OpenAccount', data: { at } };
      case 'adjust':
        return {
          type: 'AdjustBalance',
          data: {
            adjustmentId: step.id,
            amount: toPicoUsd(BigInt(step.amount)),
            reason: 'goodwill',
            actor: { name: 'operator', isVerified: false },
            at,
          },
        };
      case 'changeKey':
        return this.toKeyCommand(step, at);
      default:
        return step satisfies never;
    }
  }

  private toKeyCommand({ account, key, change }: Extract<Step, { step: 'changeKey' }>, at: string): AccountCommand {
    const keyId = toKeyId(account, key);
    if (change === 'revoke') return { type: 'RevokeKey', data: { keyId, at } };
    if (typeof change === 'string')
      return { type: 'UpdateKey', data: { keyId, changes: { blocked: change === 'block' }, at } };
    const changes = 'limit' in change ? { limit: change.limit } : { resetPeriod: change.reset };
    return { type: 'UpdateKey', data: { keyId, changes, at } };
  }

  private get now(): string {
    return this.process.clock.now();
  }
}

export function toKeyId(account: string, index: number): string {
  return `${account}-key${index}`;
}
