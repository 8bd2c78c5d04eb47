/** The chat models of the simulated Gemini API. */
import { createModels, type PriceInUsd, type SandboxModel } from '../provider/model.ts';

interface ChatOffer {
  readonly snapshot: string;
  readonly context: number;
  readonly maxOutput: number;
  /** The supported values of `thinkingLevel`. */
  readonly levels: readonly string[];
  /** The model rejects a conversation that ends with a turn of the model. */
  readonly rejectsPrefill?: true;
  readonly usd: PriceInUsd;
}

export interface ChatModel extends SandboxModel, Omit<ChatOffer, 'usd'> {}

const LIMITS = { context: 1_048_576, maxOutput: 65_536 };

export const CHAT_MODELS: ReadonlyMap<string, ChatModel> = createModels<ChatOffer>({
  'gemini-3.8-flash': {
    snapshot: 'gemini-3.8-flash',
    ...LIMITS,
    levels: ['LOW', 'MEDIUM', 'HIGH'],
    rejectsPrefill: true,
    usd: { input: '0.75', cachedInput: '0.075', output: '3.75', request: '0' },
  },
  'gemini-3.5-flash-lite': {
    snapshot: 'gemini-3.5-flash-lite',
    ...LIMITS,
    levels: ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'],
    rejectsPrefill: true,
    usd: { input: '0.3', cachedInput: '0.03', output: '2.5', request: '0' },
  },
  'gemini-3.1-pro-preview': {
    snapshot: 'gemini-3.1-pro-preview',
    ...LIMITS,
    levels: ['LOW', 'MEDIUM', 'HIGH'],
    usd: { input: '2', cachedInput: '0.2', output: '12', request: '0' },
  },
});
