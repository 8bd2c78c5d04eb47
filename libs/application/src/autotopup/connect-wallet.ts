/** Connects and disconnects the wallet that pays the automatic top-ups of an account. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { DailyLimits } from '#domain';
import { type Cause, formatUsd, money, type PicoUsd, parseUsd } from '#kernel';
import { Clock } from '../clock.ts';
import { InvalidRequestError } from '../errors.ts';
import { Secrets } from '../secrets.ts';
import { AutoTopups } from '../streams.ts';
import type { PaymentMethods } from '../topups/payment-methods.ts';
import { AUTO_TOPUP_METHOD } from './invoices.ts';
import type { WalletConnection, Wallets } from './wallets.ts';

export const MIN_AUTO_TOPUP_THRESHOLD_USD = 5;

/** Daily limits of the automatic top-ups of an account. */
export class AutoTopupLimits implements DailyLimits {
  constructor(
    readonly attempts: number,
    readonly amount: PicoUsd,
  ) {}
}

/** A read model that has reached `position` includes the change. */
interface WalletCommandResult {
  readonly position: bigint;
}

export class ConnectWallet extends Command<WalletCommandResult> {
  constructor(
    readonly accountId: string,
    readonly params: { readonly url: string; readonly threshold: PicoUsd; readonly amount: PicoUsd },
    readonly cause: Cause,
  ) {
    super();
  }
}

const NO_LIGHTNING_MESSAGE =
  'This installation has no payment backend for Lightning, so a wallet cannot top up the balance';

/** Checks the amounts that a customer requests, and then contacts the wallet. */
export class WalletConnector {
  constructor(
    private readonly wallets: Wallets,
    private readonly paymentMethods: PaymentMethods,
    private readonly limits: AutoTopupLimits,
  ) {}

  /**
   * @throws InvalidRequestError if an amount is invalid or Lightning payments are not available; any error of
   *   `Wallets.connect`
   */
  async connect({ url, threshold, amount }: ConnectWallet['params']): Promise<WalletConnection> {
    if (threshold < parseUsd(MIN_AUTO_TOPUP_THRESHOLD_USD)) {
      throw new InvalidRequestError(
        400,
        `threshold_usd must be at least ${MIN_AUTO_TOPUP_THRESHOLD_USD}`,
        'threshold_usd',
      );
    }
    this.assertAmount(amount);
    return this.wallets.connect(url);
  }

  /**
   * @throws InvalidRequestError if Lightning payments are not available, or the amount is outside their limits or above
   *   the daily limit
   */
  private assertAmount(amount: PicoUsd): void {
    const limits = this.paymentMethods.findMethod(AUTO_TOPUP_METHOD)?.terms.limits.USD;
    if (!limits) throw new InvalidRequestError(400, NO_LIGHTNING_MESSAGE);
    const maxAmount = money.min(parseUsd(limits.max), this.limits.amount);
    if (amount >= parseUsd(limits.min) && amount <= maxAmount) return;
    const range = `from ${limits.min} to ${formatUsd(maxAmount)}`;
    throw new InvalidRequestError(400, `topup_amount_usd must be ${range}`, 'topup_amount_usd');
  }
}

@CommandHandler(ConnectWallet)
export class ConnectWalletHandler implements ICommandHandler<ConnectWallet> {
  constructor(
    private readonly autoTopups: AutoTopups,
    private readonly connector: WalletConnector,
    private readonly secrets: Secrets,
    private readonly clock: Clock,
  ) {}

  /** @throws any error of `WalletConnector.connect` */
  async execute({ accountId, params, cause }: ConnectWallet): Promise<WalletCommandResult> {
    const { secret, ...wallet } = await this.connector.connect(params);
    const data = {
      wallet,
      secret: this.secrets.seal(secret),
      threshold: money.toJsonAmount(params.threshold),
      amount: money.toJsonAmount(params.amount),
      at: this.clock.now(),
    };
    const { position } = await this.autoTopups.run(accountId, { type: 'ConnectWallet', data }, cause);
    return { position };
  }
}

export class DisconnectWallet extends Command<WalletCommandResult> {
  constructor(
    readonly accountId: string,
    readonly cause: Cause,
  ) {
    super();
  }
}

@CommandHandler(DisconnectWallet)
export class DisconnectWalletHandler implements ICommandHandler<DisconnectWallet> {
  constructor(
    private readonly autoTopups: AutoTopups,
    private readonly clock: Clock,
  ) {}

  async execute({ accountId, cause }: DisconnectWallet): Promise<WalletCommandResult> {
    const command = { type: 'DisconnectWallet', data: { at: this.clock.now() } } as const;
    const { position } = await this.autoTopups.run(accountId, command, cause);
    return { position };
  }
}
