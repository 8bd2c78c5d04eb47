export type { AccountCommand, HoldExtensionTerms, HoldLimits, PartialHold } from './account/commands.ts';
export { accountDecider } from './account/decide.ts';
export type { RiskLimits } from './account/exposure.ts';
export { accountCodec } from './account/snapshot.ts';
export { type AccountState, calculateSpendable, estimateAccountBytes, isFunded } from './account/state.ts';
export { accountNameDecider, isAccountName, type NameAccount, toAccountNameStreamId } from './account-names.ts';
export { PAID_CODE } from './autotopup/backoff.ts';
export {
  type AutoTopupCommand,
  autoTopupDecider,
  type DailyLimits,
  type WalletRequestOutcome,
} from './autotopup/decide.ts';
export type { AutoTopupState } from './autotopup/state.ts';
export {
  type AutoTopupQuery,
  type AutoTopupSendCommand,
  type AutoTopupStep,
  autoTopupWorkflow,
  type WalletPaymentEffect,
} from './autotopup/workflow.ts';
export { type ChallengeCommand, type ChallengeProofClaim, challengeDecider } from './challenge/decide.ts';
export { type ChallengePhase, type ChallengeState, getChallengePhase, toChallengePayment } from './challenge/state.ts';
export { type ChallengeStep, challengeWorkflow } from './challenge/workflow.ts';
export {
  type Attempt,
  type CallUsage,
  type Charge,
  type ChargeItem,
  hasDifferentCost,
  type PriceListLine,
  type Seller,
  type Tariff,
  toCharge,
  toChargeItem,
  toProviderRequestIdFields,
} from './charge.ts';
export * from './events.ts';
export { getHoldResolution, type HoldCommand, type Holds, type OpenHold, REQUEST_ERROR_CODES } from './holds.ts';
export { parseInstant } from './instant.ts';
export {
  type ApiKeyRecord,
  type ApiKeyState,
  MAX_DEDUPE_SECONDS,
  MAX_KEY_MODELS,
  MAX_KEY_NAME_LENGTH,
  MAX_KEY_TAGS,
  MIN_KEY_LIMIT,
  toApiKeyRecord,
} from './keys.ts';
export {
  addChargeToWindow,
  advanceWindow,
  deriveChargeWindow,
  deriveReversalWindow,
  getNextReset,
  getWindowId,
  type LimitWindow,
  startWindow,
} from './limit-window.ts';
export { isModelAllowed } from './model-patterns.ts';
export { assertBalanced, type LedgerAccount, type Posting, toPostings } from './postings.ts';
export { estimatePriceListBytes, type PublishPriceList, priceListDecider } from './price-list.ts';
export {
  MAX_REFUSED_REQUESTS_PER_DAY,
  type RecordRefusedRequest,
  refusedRequestsDecider,
  toRefusedRequestsStreamId,
} from './refused-requests.ts';
export type { RejectionCode } from './rejections.ts';
export {
  ALL_UNITS,
  addUsage,
  type CostAndPrice,
  calculateCost,
  calculateCostAndPrice,
  calculateMaxPrice,
  calculatePrice,
  countAffordableUnits,
  getQuantity,
  NO_USAGE,
  type Price,
  type PriceJson,
  type PriceTerms,
  parsePriceJson,
  toPriceJson,
  toUsageJson,
  type Unit,
  UnpricedUnitError,
  type Usage,
} from './tariff.ts';
export { type CoinAccount, type CoinPosting, toCoinPostings } from './topup/coin-postings.ts';
export {
  type Coin,
  type CoinTerms,
  convertToUnits,
  convertToUsd,
  formatCoins,
  parseCoinAmount,
  type RateNames,
} from './topup/coins.ts';
export {
  isFinalPayment,
  type PaymentAdjustment,
  type ReportedPayment,
  type TopupCommand,
  topupDecider,
} from './topup/decide.ts';
export { type AmountRange, getAmountRange, type PaymentMethod, type PaymentTerms } from './topup/methods.ts';
export { type OpenInvoiceCommand, openInvoicesDecider } from './topup/open-invoices.ts';
export { type PaymentClaimCommand, type PaymentClaimState, paymentClaimDecider } from './topup/payment-claims.ts';
export {
  type AcceptedRate,
  addToHistory,
  type ConsensusRate,
  getRateTime,
  type RateContext,
  type RateLimits,
  type RateQuote,
  type RateRejection,
  selectRate,
  TIMELY_MS,
} from './topup/rates.ts';
export { type TopupState, toPaymentKey } from './topup/state.ts';
export { type PaymentsQuery, type TopupSendCommand, type TopupStep, topupWorkflow } from './topup/workflow.ts';
export { EVENT_SCHEMA } from './upcasters/index.ts';
export { type SubmissionResult, type VideoCommand, videoDecider } from './video/decide.ts';
export { getSubmittedEndpoint, type VideoPhase, type VideoState } from './video/state.ts';
export {
  type VideoQuery,
  type VideoSendCommand,
  type VideoStep,
  type VideoSubmitEffect,
  videoWorkflow,
} from './video/workflow.ts';
