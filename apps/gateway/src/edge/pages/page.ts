/** Common style and headers of the pages for customers. The pages load no resources from other sites. */
import { createHash } from 'node:crypto';
import { Html, html } from './html.ts';

export const HTML_TYPE = 'text/html; charset=utf-8';

const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f4f5f7; --card: #fff; --line: #d5d9e0; --edge: #7c8594;
  --text: #14171c; --soft: #545c69;
  --accent: #0a55c4; --on-accent: #fff;
  --good: #0b6b35; --good-back: #e3f5ea;
  --wait: #0a4aa8; --wait-back: #e6effc;
  --care: #7a4a00; --care-back: #fdf1da;
  --bad: #a3161f; --bad-back: #fce8e8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1115; --card: #191c22; --line: #353b46; --edge: #7f8998;
    --text: #eef0f3; --soft: #a9b1bd;
    --accent: #8ab8ff; --on-accent: #0b1220;
    --good: #6fd59b; --good-back: #12301f;
    --wait: #9cc3ff; --wait-back: #14263f;
    --care: #f2c46d; --care-back: #34270e;
    --bad: #ff9ea3; --bad-back: #3a1719;
  }
}
* { box-sizing: border-box; }
body { background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; margin: 0; overflow-wrap: anywhere; padding: 1rem; }
main { background: var(--card); border: 1px solid var(--line); border-radius: 16px; margin: 1.5rem auto; max-width: 27rem; padding: 1.5rem; }
footer { color: var(--soft); font-size: 0.8125rem; margin: 0 auto; max-width: 27rem; text-align: center; }
h1 { font-size: 1.25rem; line-height: 1.3; margin: 0; }
p { margin: 0.5rem 0 0; }
a { color: var(--accent); }
.brand { color: var(--soft); font-size: 0.875rem; font-weight: 600; margin: 0 0 0.25rem; }
.soft { color: var(--soft); font-size: 0.875rem; }
.status { border-radius: 10px; margin: 1.25rem 0; padding: 0.75rem 1rem; }
.status p { margin: 0; }
.status strong { display: block; }
.waiting, .partial, .short { background: var(--wait-back); color: var(--wait); }
.processing, .reduced, .expired { background: var(--care-back); color: var(--care); }
.settled { background: var(--good-back); color: var(--good); }
.invalid, .refused { background: var(--bad-back); color: var(--bad); }
dl { display: grid; gap: 0.375rem 1rem; grid-template-columns: auto 1fr; margin: 1rem 0; }
dt { color: var(--soft); }
dd { font-variant-numeric: tabular-nums; font-weight: 600; margin: 0; text-align: right; }
.large { font-size: 1.5rem; line-height: 1.3; }
.qr { background: #fff; border: 1px solid var(--line); border-radius: 12px; margin: 1.25rem auto; max-width: 18rem; padding: 0.75rem; }
.qr svg { display: block; fill: #000; height: auto; shape-rendering: crispedges; width: 100%; }
label { display: block; font-size: 0.875rem; font-weight: 600; margin-top: 1rem; }
textarea, input { background: var(--page); border: 1px solid var(--edge); border-radius: 8px; color: var(--text); display: block; font: 0.875rem/1.4 ui-monospace, monospace; margin-top: 0.25rem; padding: 0.625rem; width: 100%; }
input { font-size: 1rem; min-height: 2.75rem; }
textarea { padding-bottom: 0.125rem; resize: none; }
.actions { display: grid; gap: 0.625rem; margin-top: 1rem; }
.button { align-items: center; background: var(--accent); border: 1px solid var(--accent); border-radius: 10px; color: var(--on-accent); cursor: pointer; display: flex; font: 600 1rem/1.25 system-ui, sans-serif; justify-content: center; min-height: 2.875rem; padding: 0.5rem 1rem; text-align: center; text-decoration: none; width: 100%; }
.second { background: transparent; color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.scripted { display: none; }
.with-script .scripted { display: flex; }
.unseen { clip-path: inset(50%); height: 1px; overflow: hidden; position: absolute; white-space: nowrap; width: 1px; }
@media (prefers-reduced-motion: no-preference) {
  .button { transition: filter 0.15s; }
  .button:hover { filter: brightness(1.1); }
}
@media (max-width: 26rem) { body { padding: 0.5rem; } main { margin: 0.5rem auto 1rem; padding: 1.125rem; } }
`;

interface Page {
  readonly title: string;
  readonly body: Html;
  /** Inline script at the end of the page. The headers of the page must be created with the same script. */
  readonly script?: string;
  readonly head?: Html;
}

/** Renders a complete page. Without scripts, a page must work or explain in `noscript` that it requires them. */
export function renderPage({ title, body, script, head }: Page): string {
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Countinghouse</title>
${head}
<style>${new Html(STYLE)}</style>
</head>
<body>
${body}
${script === undefined ? undefined : html`<script>${new Html(script)}</script>`}
</body>
</html>
`;
  return text;
}

/** Returns the headers of a page. Only its own style and script are used, and nothing is sent as referrer. */
export function getPageHeaders(script?: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `style-src ${toCspHash(STYLE)}`,
    ...(script === undefined ? [] : [`script-src ${toCspHash(script)}`, "connect-src 'self'"]),
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-type': HTML_TYPE,
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'no-referrer',
  };
}

function toCspHash(source: string): string {
  return `'sha256-${createHash('sha256').update(source).digest('base64')}'`;
}

const ERROR_TITLES: Readonly<Record<number, string>> = { 404: 'Not found', 503: 'Temporarily unavailable' };

interface ErrorPageParams {
  readonly status: number;
  readonly message: string;
  readonly retryAfterSeconds?: number;
}

/** Renders an error page. An error with `retryAfterSeconds` has a link to retry. */
export function renderErrorPage({ status, message, retryAfterSeconds }: ErrorPageParams, requestId?: string): string {
  const title = ERROR_TITLES[status] ?? (status < 500 ? 'Request failed' : 'Unexpected error');
  const retryLink = html`<p class="actions"><a class="button" href="">Try again</a></p>`;
  const body = html`<main>
<p class="brand">Countinghouse</p>
<h1>${title}</h1>
<div class="status refused"><p>${message}</p></div>
${retryAfterSeconds === undefined ? undefined : retryLink}
</main>
${requestId === undefined ? undefined : html`<footer>Request ${requestId}</footer>`}`;
  return renderPage({ title, body });
}
