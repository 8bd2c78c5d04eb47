/** `POST /openai/v1/embeddings`, and the same of vendors that copy it: read, judge, embed, bill, deliver. A directive may stand in the text of any one input. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NO_TOKENS, type SandboxBill } from '../../bill.ts';
import { type Fault, readDirective } from '../../provider/directive.ts';
import { applyFault, FaultCounter } from '../../provider/faults.ts';
import type { Call, Routes } from '../../router.ts';
import { assertKey, refusalAsTold } from '../errors.ts';
import type { OpenAiProvider } from '../models.ts';
import { readEmbeddingRequest, type SandboxEmbeddingRequest } from './request.ts';
import { base64Of, vectorOf } from './vectors.ts';

export function embeddingRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const faults = new FaultCounter();
  return {
    [`POST /${provider.name}/v1/embeddings`]: async (call: Call) => {
      assertKey(call);
      const asked = readEmbeddingRequest(await call.text(), provider);
      const directive = readDirective(asked.text);
      const fault = faults.next(directive, provider.name);
      if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      if (applyFault(fault, call, refusalAsTold)) return;
      const json = JSON.stringify(answerTo(asked, fault));
      const half = json.slice(0, json.length / 2);
      if (fault === 'malformed') return call.send(200, half);
      const tokens = fault === 'zero' ? NO_TOKENS : { ...NO_TOKENS, input: asked.tokens };
      bill.charge(`embd-${randomUUID()}`, asked.model, tokens, fault);
      if (fault !== 'cut') return call.send(200, json);
      call.response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
      call.response.write(half, () => call.request.socket.destroy());
    },
  };
}

function answerTo({ model, inputs, dimensions, base64, tokens }: SandboxEmbeddingRequest, fault: Fault | undefined) {
  const data = inputs.map((input, index) => {
    const vector = vectorOf(input, model.weights, dimensions);
    return { object: 'embedding', index, embedding: base64 ? base64Of(vector) : vector };
  });
  const counted = fault === 'zero' ? 0 : tokens;
  const usage = { prompt_tokens: counted, total_tokens: counted };
  return { object: 'list', data, model: model.snapshot, ...(fault === 'no_usage' ? {} : { usage }) };
}
