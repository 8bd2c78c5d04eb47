/**
 * Opens several things as one. They are closed in reverse order: by the `close` of the result, or at once when one of
 * them cannot be opened.
 */
export async function openWithCleanup<T extends object>(
  open: (opened: AsyncDisposableStack) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const opened = new AsyncDisposableStack();
  try {
    return { ...(await open(opened)), close: () => opened.disposeAsync() };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}
