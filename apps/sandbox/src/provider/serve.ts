/** One request to a simulated provider, whatever it speaks. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxBill } from '../bill.ts';
import type { Call, Refusal } from '../router.ts';
import { charge } from './charge.ts';
import { type Events, type Outlet, PLAIN, type ResponseDelivery, type SandboxUsage } from './delivery.ts';
import { type Fault, MisunderstoodDirective, readDirective } from './directive.ts';
import { applyFault, FaultCounter, type Refused } from './faults.ts';
import type { SandboxModel } from './model.ts';
import { compose, type SandboxModelOutput, type SandboxModelRequest } from './model-output.ts';

export interface Question<M extends SandboxModel> extends SandboxModelRequest<M> {
  readonly stream: boolean;
  /** Text of the last user message. */
  readonly lastUserText: string;
}

/** What differs between providers. */
export interface Protocol<M extends SandboxModel, Q extends Question<M>> {
  refusalAsTold(refused: Refused): Refusal;
  misunderstood(message: string): Refusal;
  idOf(answer: SandboxModelOutput<M>): string;
  headersOf(answer: SandboxModelOutput<M>): Readonly<Record<string, string>>;
  /** The answer in one piece. */
  wholeOf(answer: SandboxModelOutput<M>, question: Q, fault: Fault | undefined): unknown;
  eventsOf(answer: SandboxModelOutput<M>, question: Q, fault: Fault | undefined): Events;
}

/** Providers that generate, and bill, to the end whoever reads it. */
const GO_ON: ReadonlySet<string> = new Set(['openrouter', 'groq']);

/** Reads the directive, waits, fails as directed, composes, delivers, bills. */
export function serve<M extends SandboxModel, Q extends Question<M>>(
  provider: string,
  bill: SandboxBill,
  protocol: Protocol<M, Q>,
) {
  const faults = new FaultCounter();
  return async (call: Call, question: Q, outlet: Outlet = PLAIN): Promise<void> => {
    try {
      const directive = readDirective(question.lastUserText);
      const fault = faults.next(directive, provider, question.toolbox.rounds + 1);
      if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      // A whole answer has no middle for an error.
      const outright = fault === 'error' && !question.stream ? '500' : fault;
      if (applyFault(outright, call, protocol.refusalAsTold)) return;
      const answer = compose(question, directive, fault);
      const delivery: ResponseDelivery = {
        headers: protocol.headersOf(answer),
        fault,
        stops: !GO_ON.has(provider),
        charge: (visible) => charge(bill, provider, { id: protocol.idOf(answer), answer, visible, fault }),
        usage: (visible) => usageOf(answer, visible, fault),
      };
      if (question.stream) {
        await outlet.stream(call, protocol.eventsOf(answer, question, fault), directive.chunkDelay, delivery);
      } else {
        const json = JSON.stringify(protocol.wholeOf(answer, question, fault));
        await outlet.whole(call, json, answer.n * answer.visible, delivery);
      }
    } catch (error) {
      throw error instanceof MisunderstoodDirective ? protocol.misunderstood(error.message) : error;
    }
  };
}

function usageOf({ n, input, reasoning }: SandboxModelOutput, visible: number, fault: Fault | undefined): SandboxUsage {
  return fault === 'zero' ? { prompt: 0, completion: 0 } : { prompt: input, completion: n * reasoning + visible };
}
