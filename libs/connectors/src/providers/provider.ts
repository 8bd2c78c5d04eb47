/** What the code of a vendor is given to make a `Provider` of it. */
import type { Provider } from '#application';
import type { ProviderHttp } from '../http/provider-http.ts';
import type { Dialect } from './openai/dialect.ts';

export interface ProviderClient {
  /** The vendor's address is known to it. */
  readonly http: ProviderHttp;
  readonly credential: string;
}

/** A vendor's data, as far as code asks for it. */
export interface ProviderConfig {
  readonly slug: string;
  readonly protocol: string;
  readonly baseUrl: string;
  /** How it differs from others that speak its protocol. */
  readonly dialect?: Dialect | undefined;
  /** Where it wants its credential, where that is not a matter of its protocol. */
  readonly credential?: CredentialLocation | undefined;
}

export interface CredentialLocation {
  readonly in: 'header' | 'query';
  readonly name: string;
  /** Stands before it, such as `Bearer `. */
  readonly prefix?: string | undefined;
}

/** Makes what a vendor can do; connects to nothing before it is asked. */
export type CreateProvider = (client: ProviderClient, config: ProviderConfig) => Provider;
