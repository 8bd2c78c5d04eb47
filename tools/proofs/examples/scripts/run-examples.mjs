// Runs examples and prints the outcome of each as a line of JSON: { name, outcome, … }.

/**
 * @param examples the functions of the examples by name; each throws if the result is not the documented one
 * @param describeRejection returns { status, message } for an error with which the gateway rejected a request; undefined
 *   for any other error
 */
export async function runExamples(examples, describeRejection) {
  const names = JSON.parse(process.env.EXAMPLES);
  for (const name of names) {
    const result = await runExample(examples[name], describeRejection);
    process.stdout.write(`${JSON.stringify({ name, ...result })}\n`);
  }
}

async function runExample(example, describeRejection) {
  if (!example) return { outcome: 'missing' };
  try {
    await example();
    return { outcome: 'works' };
  } catch (error) {
    const rejection = describeRejection(error);
    return rejection ? { outcome: 'rejected', ...rejection } : { outcome: 'failed', message: String(error?.stack) };
  }
}
