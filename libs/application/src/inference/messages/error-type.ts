/** Anthropic's error types by HTTP status: https://docs.claude.com/en/api/errors */
const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  410: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
};

export function getMessageErrorType(status: number): string {
  return ERROR_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}
