// Dial: a slider and a number that say the same.

// Calls `turned` with each new value that the rules of the number allow. The slider reaches as far as what is typed.
export const dial = (slider, number, turned) => {
  let last = Number(number.value);

  const set = (value) => {
    last = value;
    if (value > Number(slider.max)) slider.max = value;
    slider.value = value;
    number.value = value;
  };
  const allowed = () => number.value !== "" && number.checkValidity();

  slider.addEventListener("input", () => {
    last = Number(slider.value);
    number.value = slider.value;
    turned(last);
  });
  number.addEventListener("input", () => {
    if (!allowed()) return;
    set(Number(number.value));
    turned(last);
  });
  // A value that is not allowed gives way to the last one that was.
  number.addEventListener("change", () => {
    if (!allowed()) number.value = last;
  });
  return { set, get: () => last };
};
