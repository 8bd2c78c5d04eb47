/** Free calls that show whether a key is valid, of providers that have no other such call here. */
import { assertKey as assertDeepgramKey } from '../media/deepgram/errors.ts';
import { assertKey as assertElevenLabsKey } from '../media/elevenlabs/errors.ts';
import { assertKey as assertOpenRouterKey, withErrorFormat } from '../openai/errors.ts';
import type { Routes } from '../router.ts';

export function keyCheckRoutes(): Routes {
  return {
    ...withErrorFormat('openrouter', {
      'GET /openrouter/v1/key': (call) => {
        assertOpenRouterKey(call);
        call.sendJson(200, { data: { label: 'sk-or-v1-san...box', limit: null, limit_remaining: null, usage: 0 } });
      },
    }),
    'GET /deepgram/v1/auth/token': (call) => {
      assertDeepgramKey(call);
      call.sendJson(200, { api_key_id: '00000000-0000-4000-8000-000000000000', scopes: ['usage:write'] });
    },
    'GET /elevenlabs/v1/user': (call) => {
      assertElevenLabsKey(call);
      call.sendJson(200, { user_id: 'sandbox', subscription: { tier: 'free', character_count: 0 } });
    },
  };
}
