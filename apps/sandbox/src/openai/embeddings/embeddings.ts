/**
 * `POST /openai/v1/embeddings`, and the same route of other providers with OpenAI's API. A directive may be in the text
 * of any one input.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { formatUsd } from '#kernel';
import { calculateCost, NO_TOKENS, type SandboxBill } from '../../bill.ts';
import { type Fault, parseDirective } from '../../provider/directive.ts';
import { applyFault, FaultCounter } from '../../provider/faults.ts';
import type { Call, Routes } from '../../router.ts';
import { assertKey, createFaultError } from '../errors.ts';
import type { OpenAiProvider } from '../models.ts';
import { toCostReport } from '../usage.ts';
import { readEmbeddingRequest, type SandboxEmbeddingRequest } from './request.ts';
import { toBase64, toVector } from './vectors.ts';

export function embeddingRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const faults = new FaultCounter();
  return {
    [`POST /${provider.name}/v1/embeddings`]: async (call: Call) => {
      assertKey(call);
      const request = readEmbeddingRequest(await call.readText(), provider);
      const directive = parseDirective(request.text);
      const fault = faults.selectFault(directive, provider.name);
      if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      if (applyFault(fault, call, createFaultError)) return;
      const tokens = fault === 'zero' ? NO_TOKENS : { ...NO_TOKENS, input: request.tokens };
      const cost = directive.reportedBill.cost ?? formatUsd(calculateCost(request.model.price, tokens));
      // DeepInfra documents its cost only for chats.
      const { cost: costField } = provider.fields;
      const costFields = costField === 'cost' ? toCostReport(costField, cost) : {};
      const json = JSON.stringify(createResponse(request, fault, costFields));
      const half = json.slice(0, json.length / 2);
      if (fault === 'malformed') return call.sendJsonText(200, half);
      bill.charge(`embd-${randomUUID()}`, request.model, tokens, { fault });
      if (fault !== 'cut') return call.sendJsonText(200, json);
      call.response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
      call.response.write(half, () => call.request.socket.destroy());
    },
  };
}

function createResponse(
  { model, inputs, dimensions, base64, tokens }: SandboxEmbeddingRequest,
  fault: Fault | undefined,
  costFields: object,
) {
  const data = inputs.map((input, index) => {
    const vector = toVector(input, model.weights, dimensions);
    return { object: 'embedding', index, embedding: base64 ? toBase64(vector) : vector };
  });
  const reportedTokens = fault === 'zero' ? 0 : tokens;
  const usage = { prompt_tokens: reportedTokens, total_tokens: reportedTokens, ...costFields };
  return { object: 'list', data, model: model.snapshot, ...(fault === 'no_usage' ? {} : { usage }) };
}
