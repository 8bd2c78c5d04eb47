/** Formats the text that a developer sees after `npm start`: URLs, and commands for a first paid request. */
export function formatWelcome(api: string, sandbox: string): string {
  return `
  Countinghouse
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
      -d '{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"Say hello"}]}'
    curl -sw '\\n' -X POST ${api}/credits/balance -H "Authorization: Bearer $key"

`;
}
