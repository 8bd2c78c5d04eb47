/** The page at the URL of the proxy, for its user. */
import { createHash } from 'node:crypto';
import { type EnclaveState, type Enclaves } from './enclaves.ts';
import { PRIVATE_MODEL_PREFIX, type PrivateModel } from './gateway-client.ts';
import { describeInvalidDefault, stripPrivatePrefix } from './private-model-resolver.ts';
import { ProxyError, sanitizeForDisplay } from './proxy-error.ts';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; overflow-wrap: anywhere; padding: 0 1rem; }
h1 { font-size: 1.25rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8888; padding: 0.4rem 0.6rem 0.4rem 0; text-align: left; vertical-align: top; }
code { font-size: 0.875em; }
.bad { background: #a3161f; border-radius: 8px; color: #fff; font-weight: 600; padding: 0.75rem 1rem; }
`;

/** These headers forbid the browser to load anything else, run scripts, or show the page in a frame. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

interface StatusPageSettings {
  readonly gateway: string;
  readonly defaultModel: string | undefined;
  readonly allowUnattested: boolean;
}

/** Waits for `attestAll`, so that the page shows a recent state of the enclaves. */
export async function renderStatusPage(
  enclaves: Enclaves,
  { gateway, defaultModel, allowUnattested }: StatusPageSettings,
): Promise<string> {
  await enclaves.attestAll();
  const models = await enclaves
    .listModels()
    .catch((error: unknown) => (error instanceof ProxyError ? error.message : 'The models could not be listed'));
  const isInvalidDefault =
    defaultModel !== undefined &&
    typeof models !== 'string' &&
    !models.some(({ id }) => id === PRIVATE_MODEL_PREFIX + stripPrivatePrefix(defaultModel));
  const defaultWarning = isInvalidDefault
    ? `<p class="bad">${escapeHtml(describeInvalidDefault(defaultModel))}</p>`
    : '';
  const warning = allowUnattested
    ? '<p class="bad">ALLOW_UNATTESTED=1: simulated enclaves are accepted, whose operators can read everything that is sent to them.</p>'
    : '';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Private models</title>
<style>${STYLE}</style>
<h1>Private models</h1>
${warning}${defaultWarning}
<p>OpenAI’s clients use <code>/v1</code> of this URL, Anthropic’s clients use the URL itself. The proxy encrypts their
requests for an enclave that has attested its software. The gateway forwards ciphertext, which it cannot read.</p>
<table>
<tr><th>Gateway</th><td>${escapeHtml(gateway)}</td></tr>
<tr><th>API key</th><td>configured</td></tr>
<tr><th>Default model</th><td>${escapeHtml(defaultModel ?? 'none; set PRIVATE_MODEL for clients that request other models')}</td></tr>
</table>
${typeof models === 'string' ? `<p class="bad">${escapeHtml(models)}</p>` : renderTable(models, enclaves)}
</html>
`;
}

function renderTable(models: readonly PrivateModel[], enclaves: Enclaves): string {
  const rows = models.map(
    ({ id }) =>
      `<tr><td><code>${escapeHtml(id)}</code></td>${renderState(enclaves.getState(stripPrivatePrefix(id)))}</tr>`,
  );
  return `<table>\n<tr><th>Model</th><th>Enclave</th></tr>\n${rows.join('\n')}\n</table>`;
}

function renderState(state: EnclaveState | undefined): string {
  if (!state) return '<td>not checked yet</td>';
  const { enclave, reason = '', at } = state;
  if (!enclave) return `<td><p class="bad">not attested: ${escapeHtml(sanitizeForDisplay(reason))}</p></td>`;
  if (enclave.isSimulated) return '<td><p class="bad">simulated: no evidence</p></td>';
  const { processor, measurement, release } = enclave.evidence ?? {};
  return `<td>attested at ${new Date(at).toISOString()}: ${escapeHtml(`${release?.repository} ${release?.ref} on AMD ${processor}`)}<br><code>${escapeHtml(measurement ?? '')}</code></td>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
