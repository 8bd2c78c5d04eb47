/**
 * Opens several resources as one. They are closed in reverse order: by the `close` of the result, or at once if one of
 * them cannot be opened.
 */
export async function openWithCleanup<T extends object>(
  open: (resources: AsyncDisposableStack) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const resources = new AsyncDisposableStack();
  try {
    return { ...(await open(resources)), close: () => resources.disposeAsync() };
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}
