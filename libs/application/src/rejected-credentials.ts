/** Which of the operator's credentials external services reject at present. */
import { ActionRequiredError, type Runtime } from '#kernel';
import { UpstreamError } from './errors.ts';

/** What the calls to one external service show about its credential. */
export interface CredentialMonitor {
  /** Call after a response to a request with the credential. */
  recordSuccess(): void;
  /** Call after any failure. Only one with `isCredentialRejected` counts. */
  recordFailure(error: unknown): void;
}

/** Of a service without a credential. */
export const NO_CREDENTIAL_MONITOR: CredentialMonitor = { recordSuccess() {}, recordFailure() {} };

/** The credentials that external services have rejected, as this process observed, until they accept them again. */
export class RejectedCredentials {
  private readonly services = new Set<string>();

  /** @param reportError gets each rejection as an `ActionRequiredError` */
  constructor(private readonly reportError: Runtime['reportError']) {}

  /** Returns the names of the services that reject their credentials, in alphabetical order. */
  list(): readonly string[] {
    return [...this.services].sort();
  }

  /**
   * @param service unique name, such as `openai`; public, because health lists it
   * @param description what the operator reads, such as `the provider openai`
   * @param setting the setting that has the credential
   */
  createMonitor(service: string, description: string, setting: string): CredentialMonitor {
    return {
      recordSuccess: () => void this.services.delete(service),
      recordFailure: (error) => {
        if (!(error instanceof UpstreamError && error.isCredentialRejected)) return;
        this.services.add(service);
        const advice = new ActionRequiredError('requests fail, or are served elsewhere, until it is replaced');
        this.reportError(`${description} rejects its credential (${setting})`, advice);
      },
    };
  }
}

/** Calls a service, and records what the result shows about its credential. */
export async function callMonitored<T>(monitor: CredentialMonitor, call: () => Promise<T>): Promise<T> {
  try {
    const result = await call();
    monitor.recordSuccess();
    return result;
  } catch (error) {
    monitor.recordFailure(error);
    throw error;
  }
}
