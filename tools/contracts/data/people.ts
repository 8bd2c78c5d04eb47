/**
 * Lookups of people and companies. Of a profile, only the fields that the sandbox sends are here, and some more of
 * its documentation.
 */

/** https://docs.apollo.io/reference. The reference lists the filters as query parameters, as `person_titles[]`. */
interface ApolloPage {
  page?: number;
  per_page?: number;
}

interface Range {
  min?: number;
  max?: number;
}

interface ApolloPeopleFilters extends ApolloPage {
  person_titles?: string[];
  include_similar_titles?: boolean;
  q_keywords?: string;
  person_locations?: string[];
  person_seniorities?: string[];
  organization_locations?: string[];
  q_organization_domains_list?: string[];
  contact_email_status?: string[];
  organization_ids?: string[];
  organization_num_employees_ranges?: string[];
  revenue_range?: Range;
  q_organization_job_titles?: string[];
  organization_job_locations?: string[];
}

interface ApolloCompanyFilters extends ApolloPage {
  q_organization_name?: string;
  q_organization_domains_list?: string[];
  organization_num_employees_ranges?: string[];
  organization_locations?: string[];
  organization_not_locations?: string[];
  revenue_range?: Range;
  currently_using_any_of_technology_uids?: string[];
  q_organization_keyword_tags?: string[];
  organization_ids?: string[];
}

interface ApolloOrganization {
  id?: string;
  name?: string;
  website_url?: string;
  linkedin_url?: string;
  primary_domain?: string;
  primary_phone?: { number?: string; source?: string; sanitized_number?: string };
  industry?: string;
  estimated_num_employees?: number;
  founded_year?: number;
  raw_address?: string;
  keywords?: string[];
}

interface ApolloPerson {
  id?: string;
  first_name?: string;
  last_name?: string;
  name?: string;
  linkedin_url?: string;
  title?: string;
  email_status?: string;
  email?: string;
  headline?: string;
  city?: string;
  state?: string;
  country?: string;
  employment_history?: {
    current?: boolean;
    organization_name?: string;
    title?: string;
    start_date?: string;
    end_date?: string | null;
  }[];
  organization?: ApolloOrganization;
}

export interface ApolloContracts {
  'mixed_people/api_searchRequest': ApolloPeopleFilters;
  'mixed_people/api_searchResponse': {
    total_entries?: number;
    people?: {
      id?: string;
      first_name?: string;
      last_name_obfuscated?: string;
      title?: string | null;
      has_email?: boolean;
      has_direct_phone?: string;
      organization?: { name?: string; has_industry?: boolean };
    }[];
  };
  'mixed_companies/searchRequest': ApolloCompanyFilters;
  'mixed_companies/searchResponse': {
    breadcrumbs?: { label?: string; signal_field_name?: string; value?: string; display_name?: string }[];
    partial_results_only?: boolean;
    pagination?: { page?: number; per_page?: number; total_entries?: number; total_pages?: number };
    accounts?: Record<string, unknown>[];
    organizations?: ApolloOrganization[];
  };
  'people/matchRequest': {
    id?: string;
    email?: string;
    hashed_email?: string;
    name?: string;
    first_name?: string;
    last_name?: string;
    organization_name?: string;
    domain?: string;
    linkedin_url?: string;
    reveal_personal_emails?: boolean;
    reveal_phone_number?: boolean;
  };
  'people/matchResponse': { person: ApolloPerson | null };
  'organizations/enrichQuery': { domain?: string; name?: string; website?: string; linkedin_url?: string };
  'organizations/enrichResponse': { organization?: ApolloOrganization };
  error: { error?: string; error_code?: string; message?: string };
}

/** FullEnrich's OpenAPI document: https://docs.fullenrich.com/api/v2/openapi.yml */
interface Text {
  value?: string;
  exclude?: boolean;
  exact_match?: boolean;
}

interface Id {
  value?: number;
  exclude?: boolean;
  exact_match?: boolean;
}

interface Span extends Range {
  exclude?: boolean;
}

interface Paging {
  offset?: number;
  limit?: number;
  search_after?: string;
}

interface FullEnrichLocation {
  line1?: string;
  line2?: string;
  city?: string;
  region?: string;
  country?: string;
  country_code?: string;
}

interface SocialProfiles {
  professional_network?: { id?: number; url?: string; handle?: string; connection_count?: number };
}

interface FullEnrichCompany {
  id?: string;
  name?: string;
  domain?: string;
  website?: string;
  description?: string;
  year_founded?: number;
  headcount?: number;
  headcount_range?: string;
  company_type?: string;
  specialties?: string[];
  locations?: { headquarters?: FullEnrichLocation; offices?: FullEnrichLocation[] | null };
  industry?: { main_industry?: string };
  social_profiles?: SocialProfiles;
  logo_url?: string;
}

interface Position {
  title?: string;
  seniority?: string;
  job_functions?: { function?: string; sub_function?: string }[];
  description?: string;
  company?: FullEnrichCompany;
  is_current?: boolean;
  start_at?: string;
  end_at?: string;
}

interface FullEnrichPerson {
  id?: string;
  full_name?: string;
  first_name?: string;
  last_name?: string;
  headline?: string;
  description?: string;
  location?: FullEnrichLocation;
  social_profiles?: SocialProfiles;
  educations?: { school_name?: string; degree?: string; start_at?: string; end_at?: string }[];
  languages?: { language?: string; proficiency?: string }[];
  skills?: string[];
  employment?: { current?: Position; all?: Position[] };
}

interface SearchMetadata {
  total?: number;
  credits?: number;
  offset?: number;
  search_after?: string;
}

type PeopleFilter =
  | `current_company_${'names' | 'domains' | 'professional_network_urls' | 'specialties' | 'industries' | 'types' | 'headquarters' | 'ids'}`
  | `current_position_${'titles' | 'seniority_level' | 'job_functions' | 'sub_functions'}`
  | `past_${'company_names' | 'company_domains' | 'position_titles'}`
  | `person_${'ids' | 'names' | 'professional_network_urls' | 'locations' | 'languages' | 'skills' | 'universities'}`;
type PeopleSpan =
  | `current_company_${'headcounts' | 'founded_years' | 'years_at' | 'days_since_last_job_change'}`
  | 'current_position_years_in';
type CompanyFilter =
  | ('names' | 'domains' | 'professional_network_urls' | 'keywords' | 'specialties' | 'industries' | 'types')
  | ('headquarters_locations' | 'company_ids');

export interface FullEnrichContracts {
  'people/searchRequest': { [Filter in PeopleFilter]?: Text[] } & { [Filter in PeopleSpan]?: Span[] } & {
    current_company_professional_network_ids?: Id[];
    person_professional_network_ids?: Id[];
  } & Paging;
  'people/searchResponse': { people?: FullEnrichPerson[]; metadata?: SearchMetadata };
  'company/searchRequest': { [Filter in CompanyFilter]?: Text[] } & {
    professional_network_ids?: Id[];
    founded_years?: Span[];
    headcounts?: Span[];
  } & Paging;
  'company/searchResponse': { companies?: FullEnrichCompany[]; metadata?: SearchMetadata };
  error: { code: string; message: string };
}

/** People Data Labs' person enrichment: https://docs.peopledatalabs.com/docs/reference-person-enrichment-api */
export interface PeopleDataLabsContracts {
  'person/enrichRequest': {
    pdl_id?: string;
    lid?: string;
    name?: string;
    first_name?: string;
    middle_name?: string;
    last_name?: string;
    location?: string;
    street_address?: string;
    locality?: string;
    region?: string;
    country?: string;
    postal_code?: string;
    company?: string;
    school?: string;
    phone?: string;
    email?: string;
    email_hash?: string;
    profile?: string;
    birth_date?: string;
    min_likelihood?: number;
    required?: string;
    titlecase?: boolean;
    data_include?: string;
    include_if_matched?: boolean;
    pretty?: boolean;
  };
  'person/enrichResponse': {
    status: number;
    likelihood: number;
    data: {
      id?: string;
      full_name?: string;
      first_name?: string;
      last_name?: string;
      linkedin_url?: string;
      work_email?: string;
      mobile_phone?: string;
      job_title?: string;
      job_company_name?: string;
      job_company_website?: string;
      location_name?: string;
      skills?: string[];
      experience?: Record<string, unknown>[];
      education?: Record<string, unknown>[];
    };
  };
  error: { status: number; error: { type: string | string[]; message: string } };
}

/** https://hunter.io/api-documentation/v2#email-verifier */
export interface HunterContracts {
  'email-verifierQuery': { email: string };
  'email-verifierResponse': {
    data: {
      status: 'valid' | 'invalid' | 'accept_all' | 'webmail' | 'disposable' | 'unknown' | 'blocked';
      result: 'deliverable' | 'undeliverable' | 'risky' | 'unknown';
      _deprecation_notice?: string;
      score: number;
      email: string;
      regexp: boolean;
      gibberish: boolean;
      disposable: boolean;
      webmail: boolean;
      mx_records: boolean;
      smtp_server: boolean;
      smtp_check: boolean;
      accept_all: boolean;
      block: boolean;
      sources: { domain: string; uri: string; extracted_on: string; last_seen_on: string; still_on_page: boolean }[];
    };
    meta: { params: { email: string } };
  };
  error: { errors: { id: string; code: number; details: string }[] };
}
