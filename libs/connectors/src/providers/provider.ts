/** What the code of a protocol needs to create a `Provider`. */
import type { ErrorRuleFile, Provider } from '#application';
import type { ProviderHttp } from '../http/provider-http.ts';
import type { BillFormat } from '../http/reported-bill.ts';
import type { Dialect } from './openai/dialect.ts';

export interface ProviderClient {
  /** Sends requests to the provider's base URL. */
  readonly http: ProviderHttp;
  /** Undefined for a provider that is called without a credential. */
  readonly credential: string | undefined;
}

/** The part of a provider's catalogue entry that the connectors use. */
export interface ProviderConfig {
  readonly slug: string;
  readonly protocol: string;
  readonly baseUrl: string;
  /** How the provider differs from others with the same protocol. */
  readonly dialect?: Dialect | undefined;
  /** What error responses mean, if their statuses and codes do not show it. */
  readonly errors?: readonly ErrorRuleFile[] | undefined;
  /** Fields of chat and Responses requests that are always sent. */
  readonly always?: Readonly<Record<string, string>> | undefined;
  /** What the provider reports about its bill of a call. */
  readonly bill?: BillFormat | undefined;
  /** Path of a free GET request that requires a valid key. */
  readonly keyCheck?: string | undefined;
  /** The GET request that lists its models. */
  readonly modelList?: { readonly path: string } | undefined;
  /** Where the provider expects its credential, if its protocol does not define that. */
  readonly credential?: CredentialLocation | undefined;
}

export interface CredentialLocation {
  readonly in: 'header' | 'query';
  readonly name: string;
  /** Precedes the credential, such as `Bearer `. */
  readonly prefix?: string | undefined;
}

/** Returns the header with a credential; no header without a credential. */
export function createCredentialHeader(
  name: string,
  credential: string | undefined,
  prefix = '',
): Readonly<Record<string, string>> {
  return credential === undefined ? {} : { [name]: prefix + credential };
}

/** Creates the capabilities of a provider. No connection is opened before one of them is called. */
export type CreateProvider = (client: ProviderClient, config: ProviderConfig) => Provider;
