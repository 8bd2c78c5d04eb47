/** Serves one request to a simulated provider, whatever its protocol. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxBill } from '../bill.ts';
import type { Call, HttpError } from '../router.ts';
import { chargeOutput } from './charge.ts';
import {
  generateFor,
  type OutputWriter,
  PLAINTEXT_WRITER,
  type ResponseDelivery,
  type SandboxUsage,
  type StreamParts,
} from './delivery.ts';
import { type Fault, InvalidDirectiveError, parseDirective } from './directive.ts';
import { applyDocumentedError } from './documented-errors.ts';
import { applyFault, type ErrorFault, FaultCounter } from './faults.ts';
import type { SandboxModel } from './model.ts';
import { composeOutput, type SandboxModelOutput, type SandboxModelRequest } from './model-output.ts';

export interface ProtocolRequest<M extends SandboxModel> extends SandboxModelRequest<M> {
  readonly stream: boolean;
  readonly lastUserText: string;
}

/** What differs between protocols. */
export interface Protocol<M extends SandboxModel, Q extends ProtocolRequest<M>> {
  createFaultError(fault: ErrorFault): HttpError;
  createDirectiveError(message: string): HttpError;
  getId(output: SandboxModelOutput<M>): string;
  getHeaders(output: SandboxModelOutput<M>): Readonly<Record<string, string>>;
  /** Returns the body of a non-streaming response. */
  toResponseBody(output: SandboxModelOutput<M>, request: Q, fault: Fault | undefined): unknown;
  toEvents(output: SandboxModelOutput<M>, request: Q, fault: Fault | undefined): StreamParts;
  /** A prompt that violates the policy is blocked by a response with status 200, which is not billed. */
  readonly blocksPrompts?: true;
}

/** Providers that generate and bill to the end after the client has disconnected. */
const BILLS_AFTER_DISCONNECT: ReadonlySet<string> = new Set(['openrouter', 'groq', 'google']);

/**
 * Creates the handler of a protocol. The handler parses the directive, waits, applies faults, composes the output, and
 * delivers and bills this output. Reasoning and the first chunk of a stream are generated during the latency, so a
 * disconnect in the meantime leaves a part of them on the bill.
 */
export function createHandler<M extends SandboxModel, Q extends ProtocolRequest<M>>(
  provider: string,
  bill: SandboxBill,
  protocol: Protocol<M, Q>,
) {
  const faults = new FaultCounter();
  return async (call: Call, request: Q, writer: OutputWriter = PLAINTEXT_WRITER): Promise<void> => {
    try {
      const directive = parseDirective(request.lastUserText);
      const fault = faults.selectFault(directive, provider, request.toolbox.rounds + 1);
      const stopsOnDisconnect = !BILLS_AFTER_DISCONNECT.has(provider);
      const canStop = request.stream && stopsOnDisconnect;
      let generated = 1;
      if (directive.latency > 0 && canStop) generated = await generateFor(directive.latency, call.response);
      else if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      // Only a stream can have an error event. A non-streaming request fails with status 500.
      const effectiveFault = fault === 'error' && !request.stream ? '500' : fault;
      applyDocumentedError(provider, fault);
      if (applyFault(effectiveFault, call, protocol.createFaultError)) return;
      const isBlocked = fault === 'policy' && protocol.blocksPrompts === true;
      const generatedOutput = composeOutput(request, directive, fault);
      // The output of a rejected response is withheld, and only its input is billed.
      const withheld = { visible: 0, reasoning: 0, chunks: [], ...(protocol.blocksPrompts ? { searches: [] } : {}) };
      const output = fault === 'policy_billed' || isBlocked ? { ...generatedOutput, ...withheld } : generatedOutput;
      const origin = { fault, directive: directive.id };
      if (generated < 1) {
        const { n, reasoning, visible, chunks } = output;
        const first = reasoning + (directive.chunkDelay > 0 ? (chunks[0]?.tokens ?? 0) : visible);
        const stopped = { ...output, reasoning: 0, searches: [] };
        const tokens = Math.floor(generated * n * first);
        return chargeOutput(bill, provider, { id: protocol.getId(output), output: stopped, visible: tokens, origin });
      }
      const delivery: ResponseDelivery = {
        headers: protocol.getHeaders(output),
        fault,
        stopsOnDisconnect,
        charge: (visible) => {
          if (!isBlocked) chargeOutput(bill, provider, { id: protocol.getId(output), output, visible, origin });
        },
        usage: (visible) => toUsage(output, visible, fault),
      };
      if (request.stream) {
        await writer.writeStream(call, protocol.toEvents(output, request, fault), directive.chunkDelay, delivery);
      } else {
        const json = JSON.stringify(protocol.toResponseBody(output, request, fault));
        await writer.writeComplete(call, json, output.n * output.visible, delivery);
      }
    } catch (error) {
      throw error instanceof InvalidDirectiveError ? protocol.createDirectiveError(error.message) : error;
    }
  };
}

function toUsage({ n, input, reasoning }: SandboxModelOutput, visible: number, fault: Fault | undefined): SandboxUsage {
  return fault === 'zero' ? { prompt: 0, completion: 0 } : { prompt: input, completion: n * reasoning + visible };
}
