/**
 * Simulates what gateways do for the requests of one account, in virtual time: the decisions are those of the domain,
 * while queues, meters, statistics and providers are models of the real ones. Each rejected request waits.
 */
import {
  type AccountCommand,
  type AccountState,
  accountDecider,
  type ResetPeriod,
  type RiskLimits,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { fold, money, type PicoUsd, Rejection, ZERO_USD } from '#kernel';
import { createCharge } from '../scenarios/charges.ts';
import { MAX_OUTPUT, ResponseStats } from './response-stats.ts';
import { MAX_UNCOVERED_MS, priceResponse, type SimulatedModel, SimulatedResponse } from './simulated-response.ts';
import { VirtualTime } from './virtual-time.ts';
import { WaitingLines, type WaitingRequest } from './waiting-lines.ts';

const ABANDON_MS = 15_000;
const HOLD_MS = 900_000;
const HOLD_DIVISOR = 64n;
const QUERY = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;

export interface SimulatedRequest {
  readonly arrivesAtMs: number;
  /** Length of the response without any limit; infinite if only the output limit ends it. */
  readonly tokens: number;
  readonly model: MeasuredModel;
  readonly keyId?: string | null;
  /** Index of the gateway. */
  readonly gateway?: number;
  /** Time from the arrival until the client disconnects. */
  readonly disconnectsAfterMs?: number | undefined;
}

export interface MeasuredModel extends SimulatedModel {
  /** Lengths of earlier responses, in tokens. */
  readonly measuredLengths?: readonly number[];
  /** Undefined until a streamed response has ended. */
  readonly measuredTokensPerSecond?: number | undefined;
}

export interface SimulationParams {
  readonly requests: readonly SimulatedRequest[];
  readonly balance: PicoUsd;
  readonly riskLimits: RiskLimits;
  /** The key with the id `limited`. */
  readonly limitedKey?: { readonly limit: PicoUsd; readonly resetPeriod?: ResetPeriod };
  readonly startsAt?: string;
  /** When the gateway with the index 0 dies. Its holds end 15 s later. */
  readonly diesAtMs?: number;
}

interface Gateway {
  readonly id: string;
  readonly lines: WaitingLines;
  readonly responses: Set<SimulatedResponse>;
  isDead: boolean;
}

export class AccountSimulation {
  readonly count = { complete: 0, truncated: 0, rejected: 0, disconnected: 0, lost: 0 };
  /** What providers billed, without what they generated for a gateway that has died. */
  billed = ZERO_USD;
  /** The part of it for requests with the limited key. */
  billedToKey = ZERO_USD;
  charged = ZERO_USD;
  chargedForTruncated = ZERO_USD;
  maxWaitMs = 0;
  account: AccountState = accountDecider.getInitialState();
  private readonly time = new VirtualTime();
  private readonly startMs: number;
  /** By milliseconds since 1970. Many requests are tried at the same instant. */
  private readonly instants = new Map<number, string>();
  private readonly gateways: Gateway[] = [];
  private readonly stats = new Map<MeasuredModel, ResponseStats>();

  constructor(private readonly params: SimulationParams) {
    const { requests, balance, limitedKey, startsAt = '2026-11-20T12:00:00.000Z', diesAtMs } = params;
    this.startMs = Date.parse(startsAt);
    const at = this.toInstant();
    const key = {
      hash: '',
      secret: { key: '', box: '' },
      ...UNRESTRICTED_ACCESS,
      limit: null,
      resetPeriod: null,
      expireAt: null,
    };
    this.run({ type: 'OpenAccount', data: { key: { ...key, keyId: 'default', name: 'default' }, at } });
    this.run({ type: 'AddCredit', data: { creditId: 'c', method: 'm', amount: balance, bonus: ZERO_USD, at } });
    if (limitedKey) {
      const { limit, resetPeriod = null } = limitedKey;
      const limited = { ...key, keyId: 'limited', name: 'limited', limit: money.toJsonAmount(limit), resetPeriod };
      this.run({ type: 'CreateKey', data: { key: limited, at } });
    }
    requests.forEach((request, index) => {
      this.time.schedule(request.arrivesAtMs, () => this.receive(request, `hold-${index}`));
    });
    if (diesAtMs !== undefined) this.time.schedule(diesAtMs, () => this.kill(this.getGateway(0)));
    this.time.run();
  }

  private receive(request: SimulatedRequest, holdId: string): void {
    const { keyId = null, gateway: index = 0, disconnectsAfterMs } = request;
    const gateway = this.getGateway(index);
    if (gateway.isDead) {
      this.count.lost++;
      return;
    }
    const { nowMs } = this.time;
    let response: SimulatedResponse | undefined;
    let hasLeft = false;
    const waiting: WaitingRequest = {
      keyId,
      tryStart: (waitingCount) => {
        response = this.start(request, holdId, waitingCount);
        if (response) this.recordWait(this.time.nowMs - nowMs);
        return response !== undefined;
      },
      reject: (waitedMs) => {
        this.recordWait(waitedMs);
        if (!hasLeft) this.count.rejected++;
        hasLeft = true;
      },
    };
    const disconnect = () => {
      if (response) response.disconnect();
      if (response || hasLeft || gateway.isDead) return;
      hasLeft = true;
      this.count.disconnected++;
      gateway.lines.remove(waiting);
    };
    if (disconnectsAfterMs !== undefined) this.time.schedule(disconnectsAfterMs, disconnect);
    gateway.lines.add(waiting);
  }

  private recordWait(waitedMs: number): void {
    this.maxWaitMs = Math.max(this.maxWaitMs, waitedMs);
  }

  /** @returns undefined if the hold is rejected */
  private start(request: SimulatedRequest, holdId: string, waiting?: number): SimulatedResponse | undefined {
    const { keyId = null, model, tokens, gateway: index = 0 } = request;
    const gateway = this.getGateway(index);
    const stats = this.getStats(model);
    const { initial, long, reserved } = stats.getLengths();
    const [event] =
      this.tryRun({
        type: 'HoldFunds',
        data: {
          holdId,
          keyId,
          minAmount: priceResponse(model, 1),
          maxAmount: priceResponse(model, MAX_OUTPUT),
          partialHold: {
            minAmount: priceResponse(model, initial),
            divisor: HOLD_DIVISOR,
            extension: {
              minLimitPrice: priceResponse(model, long),
              longPrice: priceResponse(model, reserved),
              stopPrice: this.getStopPrice(model),
            },
          },
          waiting,
          riskLimits: this.params.riskLimits,
          owner: gateway.id,
          expiresAt: this.toInstant(HOLD_MS),
          query: QUERY,
          at: this.toInstant(),
        },
      }) ?? [];
    if (event?.type !== 'FundsHeld') return undefined;
    const held = money.parseJsonAmount(event.data.amount);
    const limitPrice = money.parseJsonAmount(event.data.limitPrice ?? event.data.amount);
    const recordLength = stats.start();
    const response: SimulatedResponse = new SimulatedResponse(this.time, {
      model,
      tokens,
      held,
      limitPrice,
      extend: (knownAmount, minAmount, targetAmount) =>
        this.extend(model, { holdId, knownAmount, minAmount, targetAmount }),
      onEnd: (used, end) => {
        gateway.responses.delete(response);
        const price = priceResponse(model, used);
        const charged = this.settle(holdId, price);
        this.billed = money.add(this.billed, price);
        if (keyId !== null) this.billedToKey = money.add(this.billedToKey, price);
        this.count[end]++;
        if (end === 'truncated') this.chargedForTruncated = money.add(this.chargedForTruncated, charged);
        const isTruncated = end === 'truncated';
        recordLength(isTruncated || end === 'complete' ? { tokens: used, isTruncated } : undefined);
        if (model.isStreamed) stats.tokensPerSecond ??= model.tokensPerSecond;
        gateway.lines.wake();
      },
    });
    gateway.responses.add(response);
    return response;
  }

  /** Returns what is held afterwards. */
  private extend(
    model: MeasuredModel,
    amounts: { holdId: string; knownAmount: PicoUsd; minAmount: PicoUsd; targetAmount: PicoUsd },
  ): PicoUsd {
    const { riskLimits } = this.params;
    const data = { ...amounts, stopPrice: this.getStopPrice(model), riskLimits, at: this.toInstant() };
    this.tryRun({ type: 'ExtendHold', data });
    return this.account.holds.get(amounts.holdId)?.amount ?? amounts.knownAmount;
  }

  private settle(holdId: string, price: PicoUsd): PicoUsd {
    const charge = createCharge({ price: money.toJsonAmount(price), cost: money.toJsonAmount(price) });
    const before = this.account.available + this.account.held;
    this.run({ type: 'SettleHold', data: { holdId, charge, at: this.toInstant() } });
    const charged = (before - this.account.available - this.account.held) as PicoUsd;
    this.charged = money.add(this.charged, charged);
    return charged;
  }

  private kill(gateway: Gateway): void {
    gateway.isDead = true;
    this.count.lost += gateway.lines.removeAll() + gateway.responses.size;
    for (const response of gateway.responses) response.abandon();
    this.time.schedule(ABANDON_MS, () => {
      const at = this.toInstant();
      this.run({ type: 'AbandonHolds', data: { owner: gateway.id, before: at, at } });
    });
  }

  private getStopPrice(model: MeasuredModel): PicoUsd | undefined {
    const speed = model.isStreamed ? this.getStats(model).tokensPerSecond : undefined;
    if (speed === undefined) return undefined;
    return (model.tokenPrice * BigInt(Math.ceil((speed * MAX_UNCOVERED_MS) / 1_000) + 1)) as PicoUsd;
  }

  private getStats(model: MeasuredModel): ResponseStats {
    const { measuredLengths = [], measuredTokensPerSecond } = model;
    const stats = this.stats.get(model) ?? new ResponseStats(measuredLengths, measuredTokensPerSecond);
    this.stats.set(model, stats);
    return stats;
  }

  private getGateway(index: number): Gateway {
    this.gateways[index] ??= {
      id: `gateway-${index}`,
      lines: new WaitingLines(this.time),
      responses: new Set(),
      isDead: false,
    };
    return this.gateways[index];
  }

  private toInstant(afterMs = 0): string {
    const ms = this.startMs + Math.floor(this.time.nowMs) + afterMs;
    const instant = this.instants.get(ms) ?? new Date(ms).toISOString();
    this.instants.set(ms, instant);
    return instant;
  }

  /** Returns undefined if the command is rejected. */
  private tryRun(command: AccountCommand) {
    try {
      return this.run(command);
    } catch (error) {
      if (error instanceof Rejection) return undefined;
      throw error;
    }
  }

  private run(command: AccountCommand) {
    const events = accountDecider.decide(command, this.account);
    this.account = fold(accountDecider, this.account, events);
    return events;
  }
}
