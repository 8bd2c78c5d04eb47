import type { Settings } from '#foundation';

/** What the program runs with. */
export interface RunningServices extends Pick<Settings, 'providers' | 'simulation'> {
  readonly api: string;
  /** Undefined if the sandbox does not run. */
  readonly sandbox?: string | undefined;
  readonly paymentMethods: readonly string[];
}

/**
 * Formats the text that is shown after `npm start`. It begins with what is real and what is simulated. Then follow
 * commands for a first paid request.
 */
export function formatWelcome(installation: RunningServices): string {
  const { api, sandbox, simulation } = installation;
  if (sandbox !== undefined && simulation.providers && simulation.payments) return formatDemonstration(api, sandbox);
  return `
  Countinghouse with real services
    API        ${api}/v1
    Providers  ${formatProviders(installation)}
    Payments   ${formatPayments(installation)}
${sandbox === undefined ? '' : `    Sandbox    ${sandbox}\n`}
  Create an account, credit it, create an API key, and list the models:

    npm run -s ledger -- accounts create --name team-a
    npm run -s ledger -- credit team-a --usd 100 --reason "monthly budget"
    npm run -s ledger -- keys create --account team-a --name ci --limit 50 --reset monthly
    curl -s ${api}/v1/models

`;
}

function formatDemonstration(api: string, sandbox: string): string {
  return `
  Countinghouse, a demonstration: all providers and payments are simulated
    API      ${api}/v1
    Sandbox  ${sandbox}   (simulated models, Lightning node, wallet and exchange rates)
    Private  PPQ_API_KEY=sk-… PPQ_API_BASE=${api} ALLOW_UNATTESTED=1 npm run start:private-proxy

  Create an account, pay 5 USD over Lightning, and send a paid request:

    account=$(curl -s -X POST ${api}/accounts/create)
    key=$(echo "$account" | sed 's/.*"api_key":"\\([^"]*\\)".*/\\1/')
    invoice=$(curl -s ${api}/topup/create/btc-lightning -H "Authorization: Bearer $key" \\
      -H 'Content-Type: application/json' -d '{"amount":5,"currency":"USD"}' | sed 's/.*"lightning_invoice":"\\([^"]*\\)".*/\\1/')
    curl -sw '\\n' ${sandbox}/wallet/pay -H 'Content-Type: application/json' -d "{\\"invoice\\":\\"$invoice\\"}"; sleep 1
    curl -sw '\\n' ${api}/v1/chat/completions -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \\
      -d '{"model":"openai/gpt-5.4-mini","messages":[{"role":"user","content":"Say hello"}]}'
    curl -sw '\\n' -X POST ${api}/credits/balance -H "Authorization: Bearer $key"

`;
}

function formatProviders({ providers, simulation }: RunningServices): string {
  if (simulation.providers) return 'all simulated by the sandbox (ALLOW_SANDBOX=true)';
  const names = [...providers].map(([slug, { baseUrl }]) => `${slug} (${new URL(baseUrl).origin})`);
  return `${names.join(', ')}; models of other providers are not offered`;
}

function formatPayments({ paymentMethods, simulation }: RunningServices): string {
  if (paymentMethods.length === 0) return 'none: no payment backend is set; fund accounts with "npm run ledger"';
  const methods = paymentMethods.join(', ');
  return simulation.payments
    ? `${methods}; simulated by the sandbox, whose money is free (ALLOW_SANDBOX=true)`
    : methods;
}
