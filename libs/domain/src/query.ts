/** What the query history calls a use. */
export type QueryType =
  | 'chat_completion'
  | 'completion'
  | 'response'
  | 'message'
  | 'embedding'
  | 'image_generation'
  | 'image_edit'
  | 'video_generation'
  | 'speech_to_text'
  | 'text_to_speech'
  | 'data_enrichment';

/** What was asked, as the query history shows it. */
export interface Query {
  readonly model: string;
  readonly type: QueryType;
  /** Where the request came from, by its `x-query-source` header: `api` or `ui`. */
  readonly source: string;
  readonly online: boolean;
  readonly free: boolean;
}
